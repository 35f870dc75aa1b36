"""Consecutive batches in a buffer as columns, without an object per batch."""

from __future__ import annotations

from array import array
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quorate.records.batch import (
    BATCH_BYTES_MAX,
    CONTROL_BIT,
    CRC_END,
    HEADER_BYTES,
    KNOWN_BITS,
    LENGTH_AT,
    LENGTH_END,
    MAGIC,
)
from quorate.records.crc import crc32c
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# The fields of a batch's header in their order on the wire.
_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
_LENGTH: Final = Struct(">i")


@value_type
class BatchRun:
    """Verified batches of one buffer, in order.

    `at` has their positions in the buffer, whose first byte is at `start` of the file; `headers`
    has one element per batch, with Kafka's fields in network byte order.
    """

    buffer: bytes
    start: int
    at: NDArray[np.int64]
    headers: NDArray[Any]

    def __len__(self) -> int:
        return len(self.at)

    def field(self, name: str) -> NDArray[np.int64]:
        """A field of the header (`BatchHeader`) of each batch."""
        column: NDArray[np.int64] = self.headers[name].astype(np.int64)
        return column

    @property
    def first_offset(self) -> int:
        return int(self.headers["base_offset"][0])

    @property
    def last_offset(self) -> int:
        return int(self.part(slice(-1, None)).last_offsets[0])

    @property
    def last_offsets(self) -> NDArray[np.int64]:
        return self.field("base_offset") + self.field("last_offset_delta")

    @property
    def ends(self) -> NDArray[np.int64]:
        """The position in the buffer after each batch."""
        return self.at + self.field("batch_length") + LENGTH_END

    @property
    def is_control(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.headers["attributes"] & CONTROL_BIT != 0
        return found

    def with_epoch(self, epoch: int) -> BatchRun:
        """The same batches with another epoch than in their bytes."""
        headers = self.headers.copy()
        headers["epoch"] = epoch
        return BatchRun(self.buffer, self.start, self.at, headers)

    def part(self, chosen: slice | NDArray[np.bool_]) -> BatchRun:
        """Some of the batches, in the same buffer."""
        return BatchRun(self.buffer, self.start, self.at[chosen], self.headers[chosen])


def read_run(buffer: bytes, at: int = 0, *, start: int = 0) -> BatchRun:
    """The batches from `at` on, up to the first that `check_batch` would reject."""
    places = np.frombuffer(_walk(buffer, at), np.int64)
    run = run_at(buffer, places, start=start)
    headers = run.headers
    count = headers["record_count"]
    fits = (headers["magic"] == MAGIC) & (headers["base_offset"] >= 0) & (headers["epoch"] >= 0)
    fits &= (headers["attributes"] & ~KNOWN_BITS == 0) & (count >= 1)
    fits &= run.field("last_offset_delta") + 1 == count
    several = len(fits) if fits.all() else int(np.argmin(fits))
    return run.part(slice(_intact(run, several)))


def run_at(buffer: bytes, at: Sequence[int] | NDArray[np.int64], *, start: int = 0) -> BatchRun:
    """The batches at these positions, which must have been verified."""
    places = np.array(at, np.int64)
    data = np.frombuffer(buffer, np.uint8)
    if not len(places):
        return BatchRun(buffer, start, places, np.zeros(0, _HEADER))
    octets = np.lib.stride_tricks.sliding_window_view(data, HEADER_BYTES)[places]
    return BatchRun(buffer, start, places, octets.view(_HEADER).reshape(-1))


def _walk(buffer: bytes, at: int) -> array[int]:
    """The positions of batches that end within the buffer, according to their lengths."""
    places = array("q")
    append, length_at = places.append, _LENGTH.unpack_from
    last = len(buffer) - HEADER_BYTES
    while at <= last:
        size = length_at(buffer, at + LENGTH_AT)[0] + LENGTH_END
        behind = at + size
        if not HEADER_BYTES <= size <= BATCH_BYTES_MAX or behind > len(buffer):
            break
        append(at)
        at = behind
    return places


def _intact(run: BatchRun, several: int) -> int:
    """The number of batches, among the first `several`, before the first with a wrong CRC."""
    view = memoryview(run.buffer)
    begins, ends = (run.at + CRC_END).tolist(), run.ends.tolist()
    said = run.headers["crc"].tolist()
    for index in range(several):
        if crc32c(view[begins[index] : ends[index]]) != said[index]:
            return index
    return several
