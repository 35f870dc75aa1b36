"""One log segment: a file of whole batches with a sparse in-memory index."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from quorate.storage.errors import StorageError
from quorate.storage.layout import DELETED_SUFFIX, INDEX_SUFFIXES, LOG_SUFFIX, segment_name

if TYPE_CHECKING:
    from quorate.records.ids import Offset
    from quorate.storage.file_system import File, FileSystem

INDEX_INTERVAL_BYTES: Final = 4096
# Bytes. The last batch of a log is rarely larger, and two logs that agree in it are equal.
COMPARED_BYTES: Final = 4096


class Segment:
    """`base_offset` is the offset of the first record and, in twenty digits, the file's name."""

    def __init__(self, path: str, file: File, base_offset: Offset, size_bytes: int = 0) -> None:
        self.path = path
        self.file = file
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self._offsets: list[int] = []
        self._positions: list[int] = []

    @classmethod
    def create(cls, fs: FileSystem, directory: str, base_offset: Offset) -> Segment:
        """Create an empty segment; its entry in the directory is not yet durable."""
        path = f"{directory}/{segment_name(base_offset)}"
        file = fs.open(path, create=True)
        file.truncate(0)
        return cls(path, file, base_offset)

    def index(self, offset: int, position: int) -> None:
        """Index the batch that begins here, unless a batch shortly before is indexed."""
        if not self._positions or position - self._positions[-1] >= INDEX_INTERVAL_BYTES:
            self._offsets.append(offset)
            self._positions.append(position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """Return the offset and position from which to read for a batch that holds `offset`."""
        index = bisect_right(self._offsets, offset) - 1
        if index < 0:
            return self.base_offset, 0
        return self._offsets[index], self._positions[index]

    def append(self, data: bytes) -> None:
        """Write whole batches after the last one, not flushed."""
        self.file.write_at(self.size_bytes, data)
        self.size_bytes += len(data)

    def truncate(self, size_bytes: int) -> None:
        """Truncate the file, not flushed."""
        self.file.truncate(size_bytes)
        self.size_bytes = size_bytes
        while self._positions and self._positions[-1] >= size_bytes:
            self._positions.pop()
            self._offsets.pop()

    def delete(self, fs: FileSystem) -> None:
        """Remove and close the file, after a rename to a suffix that recovery removes too.

        The file stays open if that fails: another program may have removed it.
        """
        doomed = self.path + DELETED_SUFFIX
        fs.rename(self.path, doomed)
        fs.remove(doomed)
        self.file.close()

    def is_in_place(self, fs: FileSystem) -> bool:
        """True if the file still has its name.

        If the inode numbers differ, the last bytes decide: some file systems (FUSE, SMB) give an
        open file another number. May run in a thread in parallel with appends. Raises OSError.
        """
        if self.file.is_at(self.path):
            return True
        if not fs.exists(self.path):
            return False
        end = self.size_bytes
        begin = max(0, end - COMPARED_BYTES)
        self.file.fdatasync()
        try:
            other = fs.open(self.path)
        except (FileNotFoundError, StorageError):
            return False
        try:
            return other.read_at(begin, end - begin) == self.file.read_at(begin, end - begin)
        finally:
            other.close()


def remove_indexes(fs: FileSystem, path: str) -> None:
    """Remove Kafka's index files of a segment; Kafka rebuilds them at its next start."""
    stem = path.removesuffix(LOG_SUFFIX)
    for suffix in INDEX_SUFFIXES:
        if fs.exists(stem + suffix):
            fs.remove(stem + suffix)
