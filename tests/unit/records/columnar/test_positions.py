"""Places of records agree with the reader that makes an object of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.batch import (
    BatchHeader,
    CorruptBatchError,
    encode_batch,
    iter_batches,
    read_header,
    read_records,
)
from quorate.records.columnar import positions
from quorate.records.columnar.batch_run import BatchRun, read_run, run_at
from quorate.records.columnar.positions import iter_positions, record_positions

VALUES = st.lists(st.binary(max_size=9) | st.binary(min_size=60, max_size=140), min_size=1)


def batch_of(values: list[bytes], base_offset: int, *, has_keys: bool = False) -> bytes:
    keys = [b"k"] * len(values) if has_keys else None
    return encode_batch(values, timestamp_ms=1, base_offset=base_offset, keys=keys)


def run_of(buffer: bytes, batches: list[tuple[int, BatchHeader]]) -> BatchRun:
    return run_at(buffer, [at for at, _ in batches])


@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=4), st.integers(0, 3))
def test_places_are_where_the_reader_finds_the_values(
    groups: list[tuple[list[bytes], bool]], repeats: int
) -> None:
    buffer = b"padding"
    for values, has_keys in groups:
        buffer += batch_of(values * 10**repeats, len(buffer), has_keys=has_keys)
    batches = list(iter_batches(buffer, 7))
    found = record_positions(run_of(buffer, batches))
    expected = [
        (index, record)
        for index, (at, header) in enumerate(batches)
        for record in read_records(buffer, at, header)
    ]
    assert found.batch.tolist() == [index for index, _ in expected]
    for row, (index, record) in enumerate(expected):
        at, size = int(found.value_at[row]), int(found.value_size[row])
        assert buffer[at : at + size] == record.value
        header = batches[index][1]
        assert header.base_offset + found.offset_delta[row] == record.offset
        assert header.base_timestamp_ms + found.timestamp_delta_ms[row] == record.timestamp_ms
        assert found.is_plain[row] == (record.key is None)


@given(VALUES, st.integers(0, 2), st.integers(1, 40))
def test_the_places_of_one_batch_come_so_many_at_a_time(
    values: list[bytes], repeats: int, count: int
) -> None:
    buffer = b"padding" + batch_of(values * 10**repeats, 3) + b"more"
    header = read_header(buffer, 7)
    whole = record_positions(run_at(buffer, [7]))
    runs = list(iter_positions(buffer, 7, header, count))
    assert {len(begin) for _, begin in runs[:-1]} <= {count}
    for name in ("offset_delta", "value_at", "value_size", "is_plain"):
        joined = np.concatenate([getattr(each, name) for each, _ in runs])
        assert (joined == getattr(whole, name)).all()


@pytest.mark.parametrize("size", [1, 56, 57, 8_180, 8_192, 20_000])
def test_a_record_of_any_length_ends_where_the_next_begins(size: int) -> None:
    values = [bytes(size), b"x", bytes(size)]
    buffer = batch_of(values, 5)
    found = record_positions(read_run(buffer))
    assert found.value_size.tolist() == [size, 1, size]


@pytest.mark.parametrize("length", [b"\x01", b"\x81\x01", b"\x81\x80\x01"])
def test_no_record_has_a_negative_length(length: bytes) -> None:
    buffer = bytearray(batch_of([bytes(90)] * 2, 0))
    buffer[61 : 61 + len(length)] = length
    with pytest.raises(CorruptBatchError, match="a length of -"):
        record_positions(run_at(bytes(buffer), [0]))


FEW_AND_MANY = st.lists(st.integers(1, 40), min_size=40, max_size=60)


@given(FEW_AND_MANY, st.lists(st.integers(0, 9_000), min_size=1, max_size=3), st.data())
def test_many_batches_at_once_are_told_as_each_alone(
    counts: list[int], sizes: list[int], data: st.DataObject
) -> None:
    """Damaged ones, too: with the same words about the same batch."""
    buffer = bytearray()
    for number, count in enumerate(counts):
        size = sizes[number % len(sizes)]
        buffer += batch_of([bytes(size if at == number % count else 7) for at in range(count)], 0)
    batches = list(iter_batches(bytes(buffer)))
    at, header = data.draw(st.sampled_from(batches))
    place = data.draw(st.integers(at + 61, at + header.size_bytes - 1))
    buffer[place] = data.draw(st.integers(0, 255))
    assert told(bytes(buffer), batches, positions._TOGETHER) == told(
        bytes(buffer), batches, len(batches) + 1
    )


@pytest.mark.parametrize(
    "damage",
    [
        {-13: b"\x16"},
        {-13: b"\x1a"},
        {-13: b"\x0d"},
        {-13: b"\x80\x80"},
        {-26: b"\x30", -1: b"\x80"},
        {-26: b"\x32"},
        {-26: b"\x34"},
        {-26: b"\x35"},
    ],
)
@pytest.mark.parametrize("count", [3, 60])
def test_of_many_batches_one_that_is_wrong_is_told_as_if_alone(
    damage: dict[int, bytes], count: int
) -> None:
    """The last of them may be the only one that is so long; a record has 13 bytes."""
    buffer = bytearray(batch_of([bytes(6)] * 3, 0) * 40 + batch_of([bytes(6)] * count, 0))
    batches = list(iter_batches(bytes(buffer)))
    for place, octets in damage.items():
        at = len(buffer) + place
        buffer[at : at + len(octets)] = octets
    alone = told(bytes(buffer), batches, len(batches) + 1)
    assert told(bytes(buffer), batches, positions._TOGETHER) == alone
    assert isinstance(alone[0], int), "nothing is wrong with it"


def told(buffer: bytes, batches: list[tuple[int, BatchHeader]], together: int) -> tuple[Any, ...]:
    """The result of reading so many batches together, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "_TOGETHER", together)
        try:
            found = record_positions(run_of(buffer, batches))
        except CorruptBatchError as error:
            return error.position, error.reason
    return tuple(map(list, (found.batch, found.value_at, found.value_size)))


@given(st.data())
def test_a_byte_that_breaks_a_record_is_not_passed_over(data: st.DataObject) -> None:
    """The positions are refused for exactly those batches that the reader refuses."""
    buffer = bytearray(batch_of(data.draw(VALUES) * 3, 0))
    at = data.draw(st.integers(61, len(buffer) - 1))
    buffer[at] = data.draw(st.integers(0, 255))
    header = read_header(buffer)
    try:
        expected = read_records(buffer, 0, header)
    except (CorruptBatchError, UnicodeDecodeError):
        try:
            found = record_positions(run_at(bytes(buffer), [0]))
        except CorruptBatchError:
            return
        # The caller leaves such a batch to the reader, which says what is wrong.
        assert not found.is_plain.all()
        return
    found = record_positions(run_at(bytes(buffer), [0]))
    for row, record in enumerate(expected):
        if found.is_plain[row] and record.value is not None:
            start = int(found.value_at[row])
            assert buffer[start : start + int(found.value_size[row])] == record.value
