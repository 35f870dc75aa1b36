"""Iterates over the batches of a file, each verified, without loading the file."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.records.batch import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    BatchHeader,
    CorruptBatchError,
    check_batch,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.storage.file_system import File

CHUNK_BYTES: Final = 1024 * 1024
# Twice the largest batch: behind each position examined there is space for a whole batch, and no
# byte is read more than twice.
SALVAGE_BYTES: Final = 2 * BATCH_BYTES_MAX
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_LENGTH_END: Final = 12
_MAGIC_AT: Final = 16
_MAGIC: Final = b"\x02"


class FileBatch(NamedTuple):
    """A verified batch: its position in the file, its header, and its position in memory."""

    position: int
    header: BatchHeader
    buffer: bytes
    at: int

    @property
    def data(self) -> bytes:
        """The bytes of the batch."""
        return self.buffer[self.at : self.at + self.header.size_bytes]


def scan_batches(
    file: File, size_bytes: int, position: int = 0, *, chunk_bytes: int | None = None
) -> Iterator[FileBatch]:
    """Yield the batches from `position` to `size_bytes`, in order, `chunk_bytes` per read.

    Raises CorruptBatchError, with its position in the file, at the first that fails verification.
    """
    chunk_bytes = chunk_bytes or CHUNK_BYTES
    buffer, start = b"", position
    while position < size_bytes:
        at = position - start
        if len(buffer) - at < bytes_of_batch(buffer, at) and start + len(buffer) < size_bytes:
            buffer, start, at = read_window(file, size_bytes, position, chunk_bytes), position, 0
        try:
            header = check_batch(buffer, at)
        except CorruptBatchError as error:
            raise CorruptBatchError(position, error.reason) from error
        yield FileBatch(position, header, buffer, at)
        position += header.size_bytes


def read_window(file: File, size_bytes: int, position: int, chunk_bytes: int) -> bytes:
    """Read the bytes from `position` up to `size_bytes`: `chunk_bytes`, or one batch if longer.

    Raises CorruptBatchError if the file ends before that batch.
    """
    left = size_bytes - position
    wanted = HEADER_BYTES
    window = file.read_at(position, min(max(chunk_bytes, wanted), left))
    if len(window) >= wanted:
        wanted = bytes_of_batch(window, 0)
        if len(window) < min(wanted, left):
            window = file.read_at(position, min(wanted, left))
    if len(window) < min(wanted, left):
        raise CorruptBatchError(position, f"the file ends before {size_bytes} bytes")
    return window


def bytes_of_batch(buffer: bytes, at: int) -> int:
    """Return the size that the batch at `at` claims; a header's size if that is unknown."""
    if len(buffer) - at < _LENGTH_END:
        return HEADER_BYTES
    length: int = _LENGTH.unpack_from(buffer, at + _LENGTH_AT)[0]
    return min(max(HEADER_BYTES, _LENGTH_END + length), BATCH_BYTES_MAX)


def resync_batches(file: File, size_bytes: int, position: int) -> Iterator[FileBatch]:
    """Yield all valid batches from `position` on, resynchronising after invalid bytes.

    This distinguishes damage in the middle from a torn tail if the flushed end is unknown: nothing
    follows a torn tail. A window of SALVAGE_BYTES is in memory.
    """
    data, start, at = b"", position, position
    while at < size_bytes:
        end = start + len(data)
        if end < min(at + BATCH_BYTES_MAX, size_bytes):
            start, data = at, file.read_at(at, min(SALVAGE_BYTES, size_bytes - at))
            if len(data) < min(SALVAGE_BYTES, size_bytes - at):
                size_bytes = start + len(data)
            continue
        try:
            header = check_batch(data, at - start)
        except CorruptBatchError:
            magic_at = data.find(_MAGIC, at - start + _MAGIC_AT + 1)
            if magic_at < 0 and end == size_bytes:
                return
            at = start + (magic_at if magic_at >= 0 else len(data)) - _MAGIC_AT
            continue
        yield FileBatch(at, header, data, at - start)
        at += header.size_bytes
