"""Batches as columns say what their headers do, and none is in a run that a reader refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.batch import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    BatchHeader,
    CorruptBatchError,
    check_batch,
    encode_batch,
    iter_batches,
)
from quorate.records.columnar.batch_run import read_run, run_at
from quorate.records.crc import crc32c

COUNTS = st.lists(st.integers(1, 5), min_size=1, max_size=6)
CRC_AT, CRC_END = 17, 21


def batches(counts: list[int]) -> bytes:
    found, offset = b"", 7
    for number, count in enumerate(counts):
        values = [bytes([number]) * (10 * number + 1)] * count
        found += encode_batch(values, timestamp_ms=5 - number, base_offset=offset, epoch=number)
        offset += count
    return found


@given(COUNTS, st.integers(0, HEADER_BYTES))
def test_columns_are_the_fields_of_the_headers(counts: list[int], more: int) -> None:
    buffer = b"before" + batches(counts) + bytes(more)
    run = read_run(buffer, 6, start=100)
    expected = list(iter_batches(buffer, 6, len(buffer) - more))
    assert (run.start, run.at.tolist()) == (100, [at for at, _ in expected])
    headers = [header for _, header in expected]
    for name in BatchHeader._fields:
        assert run.field(name).tolist() == [getattr(header, name) for header in headers]
    assert run.last_offsets.tolist() == [header.last_offset for header in headers]
    assert (run.first_offset, run.last_offset) == (7, 6 + sum(counts))
    assert run.ends.tolist() == [at + header.size_bytes for at, header in expected]


@given(COUNTS, st.data())
def test_a_run_ends_where_a_reader_would_stop(counts: list[int], data: st.DataObject) -> None:
    """Any byte may be another one, with a CRC that is right all the same or one that is not."""
    buffer = bytearray(batches(counts))
    at, header = data.draw(st.sampled_from(list(iter_batches(bytes(buffer)))))
    # A header has 61 bytes of the hundred or so, and most of what can be wrong is there.
    within = data.draw(st.integers(0, HEADER_BYTES) | st.integers(0, header.size_bytes - 1))
    buffer[at + within] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        crc = crc32c(bytes(buffer[at + CRC_END : at + header.size_bytes]))
        buffer[at + CRC_AT : at + CRC_END] = crc.to_bytes(4, "big")
    buffer += bytes(data.draw(st.integers(0, 99)))
    good = []
    position = 0
    while position < len(buffer):
        try:
            checked = check_batch(bytes(buffer), position)
        except CorruptBatchError:
            break
        good.append(position)
        position += checked.size_bytes
    assert read_run(bytes(buffer)).at.tolist() == good


def test_nothing_is_an_empty_run() -> None:
    for buffer in (b"", bytes(HEADER_BYTES - 1), bytes(HEADER_BYTES), b"\xff" * 200):
        assert len(read_run(buffer)) == 0
    assert len(run_at(b"", [])) == 0


@pytest.mark.parametrize("length", [-1, -(2**31), BATCH_BYTES_MAX - 11, 2**31 - 1])
def test_a_length_that_no_batch_has_ends_a_run(length: int) -> None:
    whole = batches([1])
    second = bytearray(batches([2]))
    second[8:12] = length.to_bytes(4, "big", signed=True)
    assert read_run(whole + bytes(second)).at.tolist() == [0]


def test_a_part_lies_in_the_same_buffer() -> None:
    buffer = batches([1, 2, 3])
    run = read_run(buffer)
    part = run.part(run.field("record_count") > 1)
    assert part.buffer is buffer
    assert part.field("epoch").tolist() == [1, 2]


def test_another_epoch_leaves_the_first_run_as_it_was() -> None:
    run = read_run(batches([1, 2]))
    assert run.with_epoch(9).field("epoch").tolist() == [9, 9]
    assert run.field("epoch").tolist() == [0, 1]
