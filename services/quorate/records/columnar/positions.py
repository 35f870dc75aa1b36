"""Positions of the records of many batches in one buffer, as arrays.

Records follow each other without an index, so their starts are found one by one, and runs of equal
length together. All other fields are read for all records together.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quorate.records.batch import HEADER_BYTES, CorruptBatchError
from quorate.records.codec.varint import read_varint
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from quorate.records.batch import BatchHeader
    from quorate.records.columnar.batch_run import BatchRun

    Positions = NDArray[np.int64]

# This many consecutive records of one length are taken as the start of a run.
_RUN_BEGINS: Final = 4
# The search for its end first covers this many records: gathering distant bytes is slow.
_REACH: Final = 32
_VARINT_BYTES_MAX: Final = 10
# For fewer batches than this, a loop over the records of each is faster.
_TOGETHER: Final = 32
# The values of varints of one byte.
_SHORT: Final = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(0x80)], np.int64)


@value_type
class RecordPositions:
    """The records of some batches, in order; each array has one element for each record.

    `batch` is the index of its batch. `value_at` and `value_size` are the position and the size of
    its value in the buffer; the size is -1 for null. `is_plain`: it has no key and no headers.
    """

    batch: NDArray[np.int64]
    offset_delta: NDArray[np.int64]
    timestamp_delta_ms: NDArray[np.int64]
    value_at: NDArray[np.int64]
    value_size: NDArray[np.int64]
    is_plain: NDArray[np.bool_]


def record_positions(run: BatchRun) -> RecordPositions:
    """The positions of all records of these batches.

    Raises CorruptBatchError, with the position of the batch, if records do not fill it exactly or
    their offsets are not consecutive.
    """
    buffer, heads, ends = run.buffer, run.at, run.ends
    data = np.frombuffer(buffer, np.uint8)
    counts = run.field("record_count")
    begin = _starts_together(buffer, data, heads + HEADER_BYTES, ends, counts)
    if begin is None:
        # One batch is invalid: search again for an error that names it.
        begin = _starts_one_by_one(run)
    batch = np.repeat(np.arange(len(run)), counts)
    expected = np.arange(len(begin)) - np.repeat(np.cumsum(counts) - counts, counts)
    stops = np.append(begin[1:], 0)
    stops[np.cumsum(counts) - 1] = ends
    try:
        places, is_wrong = _read_fields(data, begin, stops, batch)
    except (IndexError, ValueError) as error:
        raise CorruptBatchError(int(heads[0]), f"a record of it or behind it: {error}") from error
    is_wrong |= places.offset_delta != expected
    if is_wrong.any():
        index = int(np.argmax(is_wrong))
        raise CorruptBatchError(
            int(heads[batch[index]]), f"record {expected[index]}: its fields do not fill it"
        )
    return places


def iter_positions(
    buffer: bytes, position: int, header: BatchHeader, count: int
) -> Iterator[tuple[RecordPositions, Positions]]:
    """Yield the same for one batch, `count` records at a time, with the start of each record.

    Raises CorruptBatchError as `record_places` does, once it reaches the invalid record.
    """
    data = np.frombuffer(buffer, np.uint8)
    span = _Span(position, position + header.size_bytes)
    found = 0
    while span.at < span.end:
        starts = array("q")
        _find_starts(buffer, span, starts, count)
        begin = np.frombuffer(starts, np.int64)
        stops = np.append(begin[1:], span.at)
        try:
            places, is_wrong = _read_fields(data, begin, stops, np.zeros(len(begin), np.int64))
        except (IndexError, ValueError) as error:
            raise CorruptBatchError(position, f"record {found} or behind it: {error}") from error
        is_wrong |= places.offset_delta != np.arange(found, found + len(begin))
        if is_wrong.any():
            index = found + int(np.argmax(is_wrong))
            raise CorruptBatchError(position, f"record {index}: its fields do not fill it")
        yield places, begin
        found += len(begin)
    if found != header.record_count:
        raise CorruptBatchError(position, f"{found} records, the header says {header.record_count}")


def _starts_together(
    buffer: bytes, data: NDArray[np.uint8], at: Positions, ends: Positions, counts: Positions
) -> Positions | None:
    """Starts of the records of batches whose first records are at these positions.

    All batches advance together from record to record, as long as many have a next one. None if
    any batch contradicts its header, or has a record of 8 KiB or more.
    """
    if (counts > ends - at).any():
        return None
    order = np.argsort(-counts, kind="stable")
    places, stops, left = at[order], ends[order], counts[order]
    first = (np.cumsum(counts) - counts)[order]
    begin = np.empty(int(counts.sum()), np.int64)
    step = 0
    # The longest batches come first, so the first `many` have a next record.
    while (many := int(np.searchsorted(-left, -step))) >= _TOGETHER:
        here = places[:many]
        if (here >= stops[:many]).any():
            return None
        begin[first[:many] + step] = here
        sizes = _record_sizes(data, here)
        if sizes is None:
            return None
        places[:many] += sizes
        step += 1
    if (places[many:] != stops[many:]).any():
        return None
    for index in range(many):
        starts = array("q")
        try:
            _walk(buffer, int(places[index]), int(stops[index]), starts, None)
        except (IndexError, ValueError):
            return None
        if len(starts) != left[index] - step:
            return None
        begin[first[index] + step : first[index] + left[index]] = np.frombuffer(starts, np.int64)
    return begin


def _record_sizes(data: NDArray[np.uint8], at: Positions) -> Positions | None:
    """Sizes of the records at these positions, including the length of one or two bytes."""
    sizes = data[at].astype(np.int64)
    if (sizes & 1).any():
        return None
    longer = np.flatnonzero(sizes >= 0x80)
    second = at[longer] + 1
    if len(longer):
        if int(second.max()) >= len(data):
            return None
        byte = data[second]
        if (byte >= 0x80).any():
            return None
        sizes[longer] += (byte.astype(np.int64) << 7) - 0x80
    sizes >>= 1
    sizes += 1
    sizes[longer] += 1
    return sizes


def _starts_one_by_one(run: BatchRun) -> Positions:
    """The same, with an error that names the batch."""
    starts = array("q")
    counts = run.field("record_count")
    for at, end, count in zip(run.at.tolist(), run.ends.tolist(), counts.tolist(), strict=True):
        before = len(starts)
        _find_starts(run.buffer, _Span(at, end), starts)
        if len(starts) - before != count:
            raise CorruptBatchError(at, f"{len(starts) - before} records, the header says {count}")
    return np.frombuffer(starts, np.int64)


class _Span:
    """The part of a batch whose records are still to be found: from `at` to `end`."""

    def __init__(self, position: int, end: int) -> None:
        self.position = position
        self.at = position + HEADER_BYTES
        self.end = end


def _find_starts(buffer: bytes, span: _Span, starts: array[int], count: int | None = None) -> None:
    """Append the start positions of the next records, at most `count`; None for all.

    Raises CorruptBatchError if the lengths do not lead to the end of the batch.
    """
    before = len(starts)
    try:
        span.at = _walk(buffer, span.at, span.end, starts, count)
    except (IndexError, ValueError) as error:
        what = f"record {len(starts) - before}: {error}"
        raise CorruptBatchError(span.position, what) from error


def _walk(buffer: bytes, at: int, end: int, starts: array[int], count: int | None) -> int:
    last = same = 0
    reach = _REACH
    append = starts.append
    left = count or end
    while at < end and left > 0:
        append(at)
        length = buffer[at]
        # Most lengths take one or two bytes, and a call for each would be most of the work.
        if length < 0x80:
            size = (length >> 1) + 1
        elif buffer[at + 1] < 0x80:
            size = ((length & 0x7F | buffer[at + 1] << 7) >> 1) + 2
        else:
            size = _long_size(buffer, at)
        if length & 1:
            raise ValueError(f"a length of {read_varint(buffer, at)[0]}")
        at += size
        left -= 1
        if size != last:
            last, same = size, 0
            continue
        same += 1
        if same == _RUN_BEGINS:
            run = _run_length(buffer, at, size, min(reach, left, (end - at) // size))
            starts.frombytes(np.arange(at, at + run * size, size).tobytes())
            at += run * size
            left -= run
            same = 0
            reach = 8 * reach if run == reach else _REACH
    if at > end:
        raise ValueError(f"it ends at {at}, its batch at {end}")
    return at


def _long_size(buffer: bytes, at: int) -> int:
    length, behind = read_varint(buffer, at)
    return length + behind - at


def _run_length(buffer: bytes, at: int, size: int, most: int) -> int:
    """The number of records from `at` on with the length of the previous record, `size`."""
    sample = at - size
    for index in range(_VARINT_BYTES_MAX):
        byte = buffer[sample + index : sample + index + 1]
        found = buffer[at + index : at + index + most * size : size]
        most = len(found) - len(found.lstrip(byte))
        if byte < b"\x80":
            break
    return most


def _read_fields(
    data: NDArray[np.uint8], begin: Positions, stops: Positions, batch: Positions
) -> tuple[RecordPositions, NDArray[np.bool_]]:
    """The fields of each record, and a mask of plain records that do not end at their stop."""
    _, at = _varints(data, begin)
    timestamp_delta, at = _varints(data, at + 1)
    offset_delta, at = _varints(data, at)
    key_size, at = _varints(data, at)
    at = at + np.maximum(key_size, 0)
    value_size, at = _varints(data, at)
    value_at = at
    at = at + np.maximum(value_size, 0)
    headers, at = _varints(data, at)
    is_plain = (key_size < 0) & (headers == 0)
    places = RecordPositions(batch, offset_delta, timestamp_delta, value_at, value_size, is_plain)
    return places, (at != stops) & is_plain


def rows_at(data: NDArray[np.uint8], at: Positions, size: int) -> NDArray[np.uint8]:
    """The bytes at these positions as rows, without a copy if they are equally spaced."""
    windows = np.lib.stride_tricks.sliding_window_view(data, size)
    if len(at) > 1:
        steps = np.diff(at)
        if (steps == steps[0]).all() and steps[0] > 0:
            return windows[at[0] : at[-1] + 1 : steps[0]]
    return windows[at]


def _varints(data: NDArray[np.uint8], at: Positions) -> tuple[Positions, Positions]:
    """The zigzag varints at these positions, and the positions after them."""
    byte = data[at]
    at = at + 1
    more = np.flatnonzero(byte >= 0x80)
    if not len(more):
        return _SHORT[byte], at
    value = (byte & 0x7F).astype(np.int64)
    shift = 7
    while len(more):
        if shift >= 7 * _VARINT_BYTES_MAX:
            raise ValueError("a varint is longer than 64 bits")
        byte = data[at[more]]
        value[more] |= (byte & 0x7F).astype(np.int64) << shift
        at[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    unsigned: Any = value.view(np.uint64)
    return (unsigned >> np.uint64(1)).astype(np.int64) ^ -(value & 1), at
