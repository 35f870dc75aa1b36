"""Columns of records decline what is to be taken one by one; test_record_runs.py has the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from quorate.controller.partitions.partition import MIGRATING_DIR, Partition
from quorate.controller.partitions.record_columns import (
    NotColumnarError,
    read_changes,
    read_partitions,
)
from quorate.controller.partitions.records import changed
from quorate.controller.partitions.rows import PartitionRows, key_of
from quorate.records.batch import encode_batch, read_header
from quorate.records.columnar.pieces import iter_pieces
from quorate.records.ids import DirectoryId, TopicId
from quorate.records.metadata import PartitionChangeRecord, PartitionRecord, encode_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.partitions.record_columns import (
        PartitionChangeColumns,
        PartitionColumns,
    )
    from quorate.records.columnar.pieces import RecordPiece
    from quorate.records.metadata import MetadataRecord

A, B = TopicId(b"a" * 16), TopicId(b"b" * 16)
DIRS = tuple(DirectoryId(bytes([number]) * 16) for number in (1, 2, 3))
ONE = Partition(replicas=(1, 2, 3), isr=(1, 2), leader=1, directories=DIRS)


def piece_of(records: Sequence[MetadataRecord], version: int) -> RecordPiece:
    buffer = encode_batch([encode_record(each, version) for each in records], timestamp_ms=1)
    (piece,) = iter_pieces(buffer, 0, read_header(buffer))
    return piece


def partition(topic_id: TopicId, partition_id: int, **fields: Any) -> PartitionRecord:  # noqa: ANN401
    record = PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=(1, 2, 3),
        isr=(1, 2),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=DIRS,
    )
    return replace(record, **fields)


def partitions(*records: PartitionRecord, version: int = 2) -> PartitionColumns:
    return read_partitions(piece_of(records, version), np.arange(len(records)))


def changes(*records: PartitionChangeRecord, version: int = 2) -> PartitionChangeColumns:
    return read_changes(piece_of(records, version), np.arange(len(records)))


def change(partition_id: int, **fields: Any) -> PartitionChangeRecord:  # noqa: ANN401
    return PartitionChangeRecord(partition_id=partition_id, topic_id=A, **fields)


def test_partitions_become_rows_in_the_order_of_their_keys() -> None:
    read = partitions(
        partition(B, 1), partition(A, 3), partition(A, 0, adding_replicas=(9,)), partition(B, 0)
    )
    assert read.topic_runs() == [(0, B), (1, A), (3, B)]
    rows = read.rows(read.topic_runs(), {A: 1, B: 2})
    assert dict(rows.partitions()) == {
        key_of(1, 0): replace(ONE, adding_replicas=(9,)),
        key_of(1, 3): ONE,
        key_of(2, 0): ONE,
        key_of(2, 1): ONE,
    }
    assert rows.topic_ids == (A, B)


def test_replicas_of_old_records_lie_in_directories_to_be_told() -> None:
    read = partitions(partition(A, 0, directories=()), version=0)
    rows = read.rows(read.topic_runs(), {A: 1})
    assert rows.partition(0).directories == (MIGRATING_DIR,) * 3


@pytest.mark.parametrize(
    "fields",
    [
        {"partition_id": -1},
        {"partition_id": 1 << 24},
        {"directories": DIRS[:2]},
        {"replicas": tuple(range(30_000)), "directories": ()},
    ],
)
def test_partitions_that_are_errors_or_very_wide_are_declined(fields: dict[str, Any]) -> None:
    with pytest.raises(NotColumnarError):
        partitions(partition(A, 1), partition(A, 2), replace(partition(A, 3), **fields))


def test_a_partition_that_is_there_twice_is_declined() -> None:
    read = partitions(partition(A, 0), partition(B, 0), partition(A, 0))
    with pytest.raises(NotColumnarError):
        read.rows(read.topic_runs(), {A: 1, B: 2})


def test_bytes_that_do_not_decode_are_declined() -> None:
    buffer = encode_batch([encode_record(partition(A, 0), 2)[:-1]], timestamp_ms=1)
    (piece,) = iter_pieces(buffer, 0, read_header(buffer))
    with pytest.raises(NotColumnarError):
        read_partitions(piece, np.arange(1))


def test_changes_of_leaders_and_isrs_are_applied_together() -> None:
    records = [
        change(0, isr=(2,), leader=2),
        change(1, leader=-1),
        change(2, isr=(1, 2, 3)),
        change(3, leader_recovery_state=1),
        change(4, isr=()),
        change(5, isr=tuple(range(7))),
    ]
    old = PartitionRows.made([(key_of(1, number), A, ONE) for number in range(len(records))])
    new = changes(*records).applied(old)
    assert [p for _, p in new.partitions()] == [changed(ONE, record) for record in records]


@pytest.mark.parametrize(
    "fields",
    [
        {"replicas": (1,)},
        {"removing_replicas": ()},
        {"adding_replicas": (1,)},
        {"directories": DIRS},
        {"eligible_leader_replicas": ()},
        {"last_known_elr": (1,)},
        {"isr": tuple(range(70_000))},
    ],
)
def test_changes_of_anything_else_are_declined(fields: dict[str, Any]) -> None:
    with pytest.raises(NotColumnarError):
        changes(change(0), change(1, **fields))


@pytest.mark.parametrize(
    ("record", "partition"),
    [
        (change(0, leader=3), ONE),
        (change(0), replace(ONE, partition_epoch=2**31 - 1)),
        (change(0, leader=1), replace(ONE, leader_epoch=2**31 - 1)),
    ],
    ids=["a leader that was not in sync", "the last epoch", "the last epoch of a leader"],
)
def test_changes_that_are_counted_or_cannot_be_are_declined(
    record: PartitionChangeRecord, partition: Partition
) -> None:
    with pytest.raises(NotColumnarError):
        changes(record).applied(PartitionRows.made([(key_of(1, 0), A, partition)]))
