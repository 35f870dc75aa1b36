"""Rows that are merged hold what was in both, and those from before stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given

from quorate.controller.partitions.partition import UNASSIGNED_DIR, Partition
from quorate.controller.partitions.row_merge import upserted
from quorate.records.ids import DirectoryId
from tests.unit.controller.partitions.test_rows import ONE, held, made, tables

if TYPE_CHECKING:
    from quorate.controller.partitions.rows import PartitionRows


def merged(rows: PartitionRows, other: PartitionRows) -> PartitionRows:
    return upserted(rows, other, 0, len(other))


@given(before=tables, changes=tables)
def test_rows_take_others_in_and_stay_as_they_are(
    before: dict[int, Partition], changes: dict[int, Partition]
) -> None:
    rows = made(before)
    after = merged(rows, made(changes)) if changes else rows
    assert held(after) == before | changes
    assert after.keys.tolist() == sorted(before | changes)
    assert held(rows) == before


def test_directories_that_nobody_has_any_more_are_forgotten() -> None:
    rows = made({0: ONE})
    for number in range(1000):
        there = DirectoryId(number.to_bytes(16))
        rows = merged(rows, made({0: replace(ONE, directories=(there, UNASSIGNED_DIR))}))
    assert len(rows.directories) < 100
    assert held(rows) == {0: replace(ONE, directories=(there, UNASSIGNED_DIR))}


def test_more_directories_than_a_byte_can_name_are_kept_apart() -> None:
    table = {
        number: replace(ONE, directories=(DirectoryId(number.to_bytes(16)), UNASSIGNED_DIR))
        for number in range(300)
    }
    rows = made(table)
    assert dict(rows.partitions()) == table
    few, others = rows.copied(0, 3), made({500: ONE})
    assert dict(merged(few, others).partitions()) == {**dict(few.partitions()), 500: ONE}
