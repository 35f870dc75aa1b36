from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.controller.partitions.partition import (
    LOST_DIR,
    MIGRATING_DIR,
    NO_LEADER,
    NO_SELDOM,
    UNASSIGNED_DIR,
    Partition,
    is_reserved,
    rare_fields_of,
)
from quorate.records.ids import format_uuid

ONE = Partition(replicas=(1, 2), isr=(1, 2), leader=1, directories=(UNASSIGNED_DIR,) * 2)


def test_a_partition_is_balanced_while_its_first_replica_leads() -> None:
    led_by_another, led_by_nobody = replace(ONE, leader=2), replace(ONE, leader=NO_LEADER)
    assert [p.is_imbalanced for p in (ONE, led_by_another, led_by_nobody)] == [False, True, True]
    assert [p.is_offline for p in (ONE, led_by_another, led_by_nobody)] == [False, False, True]


def test_what_a_partition_seldom_has_is_told_apart() -> None:
    assert rare_fields_of(ONE) == NO_SELDOM
    assert rare_fields_of(replace(ONE, adding_replicas=(3,))).adding_replicas == (3,)
    assert rare_fields_of(replace(ONE, last_known_elr=(3,))) != NO_SELDOM


def test_reserved_directories_have_kafkas_names() -> None:
    assert [format_uuid(one) for one in (MIGRATING_DIR, UNASSIGNED_DIR, LOST_DIR)] == [
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "AAAAAAAAAAAAAAAAAAAAAg",
    ]


@pytest.mark.parametrize(
    ("high", "low", "is_kept"),
    [(0, 0, True), (0, 99, True), (0, -1, True), (0, 100, False), (1, 0, False), (-1, 5, False)],
)
def test_ids_below_a_hundred_name_no_disk(high: int, low: int, *, is_kept: bool) -> None:
    uuid = high.to_bytes(8, signed=True) + low.to_bytes(8, signed=True)
    assert is_reserved(uuid) is is_kept
