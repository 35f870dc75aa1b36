"""Cache of the newest batches, so that a leader serves Fetch from memory."""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import Final

_PLACE: Final = struct.Struct(">qi")
_DELTA: Final = struct.Struct(">i")
_DELTA_AT: Final = 23
_LENGTH_END: Final = 12
_SLACK: Final = 1024


class BatchCache:
    """Groups of whole batches as they were appended, contiguous up to the log's end.

    Bounded by `bytes_max`; the newest group stays, however large it is.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._size_bytes = 0
        self._starts: list[int] = []
        self._groups: list[bytes] = []
        self._head = 0

    def append(self, base_offset: int, data: bytes) -> None:
        """Add the group that begins at `base_offset`; drop the oldest that no longer fit."""
        self._starts.append(base_offset)
        self._groups.append(data)
        self._size_bytes += len(data)
        while self._size_bytes > self._bytes_max and self._head < len(self._groups) - 1:
            self._size_bytes -= len(self._groups[self._head])
            self._groups[self._head] = b""
            self._head += 1
        if self._head >= _SLACK and self._head * 2 >= len(self._groups):
            del self._starts[: self._head], self._groups[: self._head]
            self._head = 0

    def clear(self) -> None:
        """Drop everything: the log was truncated or restarted."""
        self._starts.clear()
        self._groups.clear()
        self._head = self._size_bytes = 0

    def read(self, start: int, *, end: int, bytes_max: int) -> bytes | None:
        """Read whole batches as MetadataLog.read does; None if `start` is not in memory."""
        index = bisect_right(self._starts, start, self._head) - 1
        if index < self._head:
            return None
        parts: list[bytes] = []
        room = bytes_max
        for data in map(self._groups.__getitem__, range(index, len(self._groups))):
            first, last = extent(data, start=start, end=end, bytes_max=room, at_least_one=not parts)
            if last > first:
                parts.append(data if last - first == len(data) else data[first:last])
                room -= last - first
            if last < len(data) or room <= 0:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)


def extent(
    data: bytes, *, start: int, end: int, bytes_max: int, at_least_one: bool
) -> tuple[int, int]:
    """Return the span in `data` of the batches from offset `start` on that end below `end`."""
    position, first = 0, -1
    while position < len(data):
        base, length = _PLACE.unpack_from(data, position)
        (delta,) = _DELTA.unpack_from(data, position + _DELTA_AT)
        following = position + _LENGTH_END + length
        if base + delta >= end:
            break
        if base + delta >= start:
            if first < 0:
                first = position
            if following - first > bytes_max and not (at_least_one and first == position):
                break
        position = following
    return (position if first < 0 else first), position
