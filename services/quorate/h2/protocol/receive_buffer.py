"""Bytes that a connection has received and not parsed yet."""

from __future__ import annotations

from typing import Final

# Bytes. A call may begin with fifteen bytes: parsing a piece takes some hundred microseconds at
# most.
PIECE_BYTES: Final = 1024


class ReceivedBytes:
    """A buffer that returns its bytes in pieces, without moving those that are left."""

    __slots__ = ("_data", "_parsed")

    def __init__(self) -> None:
        self._data = b""
        self._parsed = 0

    def __bool__(self) -> bool:
        return self._parsed < len(self._data)

    def put(self, data: bytes) -> None:
        """Append bytes."""
        self._data = self._data[self._parsed :] + data if self else data
        self._parsed = 0

    def take(self) -> bytes:
        """Remove and return the next piece; empty if none is left."""
        piece = self._data[self._parsed : self._parsed + PIECE_BYTES]
        self._parsed += len(piece)
        if not self:
            self.clear()
        return piece

    def clear(self) -> None:
        """Discard what is left."""
        self._data, self._parsed = b"", 0
