"""Pieces of a batch give the records that the reader of whole batches gives, or the same error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.batch import CorruptBatchError, encode_batch, read_header, read_records
from quorate.records.codec.schema import SchemaError, schema_of, shapes_of
from quorate.records.columnar.pieces import NO_TYPE, iter_pieces
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from tests.unit.records.test_metadata import VERSIONS, instances_of

if TYPE_CHECKING:
    from quorate.records.metadata import MetadataRecord

TOPIC_ID = TopicId(bytes(range(16)))


@st.composite
def encoded(draw: st.DrawFn) -> bytes:
    """Any record of this release, of a later one, or none at all."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([b"", b"\1", b"\1\3", b"\1\x7f\0what", b"\1\3\x09what"]))
    cls, version = draw(st.sampled_from(VERSIONS))
    return encode_record(
        draw(instances_of(cls, schema_of(cls).body.fields, version, shapes_of(cls))), version
    )


def one_by_one(buffer: bytes, position: int) -> list[MetadataRecord]:
    header = read_header(buffer, position)
    return [decode_record(r.value or b"")[0] for r in read_records(buffer, position, header)]


def in_pieces(buffer: bytes, position: int, count: int) -> list[MetadataRecord]:
    header = read_header(buffer, position)
    pieces = list(iter_pieces(buffer, position, header, count))
    assert all(len(piece) <= count for piece in pieces)
    return [record for piece in pieces for record in piece.records()]


@given(values=st.lists(encoded(), min_size=1, max_size=12), data=st.data())
def test_pieces_hold_what_the_batch_holds(values: list[bytes], data: st.DataObject) -> None:
    keys = data.draw(st.none() | st.just([b"key"] * len(values)))
    buffer = b"other" + encode_batch(values, timestamp_ms=5, base_offset=7, keys=keys) + b"more"
    count = data.draw(st.integers(1, 13))
    try:
        expected = one_by_one(buffer, 5)
    except SchemaError:
        with pytest.raises(SchemaError):
            in_pieces(buffer, 5, count)
    else:
        assert in_pieces(buffer, 5, count) == expected


@given(data=st.data())
def test_a_byte_that_breaks_a_record_is_not_passed_over(data: st.DataObject) -> None:
    values = [bytes([1, 20, 0, 0, *range(size)]) for size in data.draw(st.lists(st.integers(0, 9)))]
    buffer = bytearray(encode_batch([b"\1\x14\0\0", *values] * 5, timestamp_ms=5))
    buffer[data.draw(st.integers(61, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    try:
        expected = one_by_one(bytes(buffer), 0)
    except (ValueError, UnicodeDecodeError):
        with pytest.raises(ValueError):  # noqa: PT011 - of batches, of records
            in_pieces(bytes(buffer), 0, 3)
    else:
        assert in_pieces(bytes(buffer), 0, 3) == expected


def test_a_batch_with_another_number_of_records_is_refused() -> None:
    buffer = encode_batch([b"\1\x14\0\0"] * 5, timestamp_ms=5)
    header = read_header(buffer)._replace(record_count=6)
    with pytest.raises(CorruptBatchError, match="5 records, the header says 6"):
        list(iter_pieces(buffer, 0, header))


def test_types_are_seen_without_decoding() -> None:
    known = encode_record(TopicRecord(name="a", topic_id=TOPIC_ID), 0)
    values = [
        known,
        b"\1\x14\0\0",
        b"\1\2\x05later",
        b"\2\2\0other frame",
        b"\1\x80\1\0long",
        b"\1",
    ]
    buffer = encode_batch(values, timestamp_ms=5)
    (piece,) = iter_pieces(buffer, 0, read_header(buffer))
    assert piece.api_keys.tolist() == [2, 20, 2, NO_TYPE, NO_TYPE, NO_TYPE]
    assert piece.is_of(TopicRecord).tolist() == [True] + [False] * 5
    assert piece.is_of(NoOpRecord).tolist() == [False, True] + [False] * 4


def test_a_type_is_taken_as_columns_whatever_lies_between() -> None:
    def partition(number: int, replicas: tuple[int, ...]) -> PartitionRecord:
        return PartitionRecord(
            partition_id=number,
            topic_id=TOPIC_ID,
            replicas=replicas,
            isr=replicas[:1],
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
        )

    records = [partition(number, (1, 2, 3)[: 1 + number % 3]) for number in range(20)]
    values = [encode_record(record, number % 2) for number, record in enumerate(records)]
    values.insert(5, b"\1\x14\0\0")
    buffer = encode_batch(values, timestamp_ms=5)
    (piece,) = iter_pieces(buffer, 0, read_header(buffer))
    index = np.flatnonzero(piece.is_of(PartitionRecord))
    found: dict[int, tuple[int, int]] = {}
    for within, columns in piece.columns(PartitionRecord, index):
        ids = columns.fields["partition_id"].values.tolist()  # type: ignore[union-attr]
        count = columns.fields["replicas"].count  # type: ignore[union-attr]
        found |= dict(zip(within.tolist(), [(number, count) for number in ids], strict=True))
    assert found == {n: (n, len(record.replicas)) for n, record in enumerate(records)}
