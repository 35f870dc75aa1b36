"""The segments of one log: append to the last, read in order, truncate, delete.

Nothing here is durable without a flush: segments written since the last flush are dirty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.batch import CorruptBatchError
from quorate.records.ids import Offset
from quorate.storage.errors import DamagedLogError, TruncationPointError
from quorate.storage.log.batch_scanner import scan_batches
from quorate.storage.log.segment import Segment, remove_indexes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.replication.log_state import LogState
    from quorate.storage.file_system import FileSystem
    from quorate.storage.log.batch_scanner import FileBatch


class Segments:
    """The files of a log; `state` gives the epoch of each offset."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        segments: list[Segment],
        state: LogState,
        *,
        segment_bytes: int,
    ) -> None:
        """Start another segment above `segment_bytes`."""
        self._fs = fs
        self._directory = directory
        self._segments = segments
        self._state = state
        self._segment_bytes = segment_bytes
        self._dirty: list[Segment] = []
        self._has_new_entries = False

    @property
    def files(self) -> tuple[Segment, ...]:
        """All segments. Callable from any thread."""
        return tuple(self._segments)

    @property
    def size_bytes(self) -> int:
        """The total size of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    def bytes_from(self, offset: Offset) -> int:
        """The total size of the segments that would remain if the log started at `offset`."""
        following = [segment.base_offset for segment in self._segments[1:]]
        return sum(
            segment.size_bytes
            for segment, end in zip(self._segments, [*following, None], strict=True)
            if end is None or end > offset
        )

    # --- writing ----------------------------------------------------------------------------------

    def append(self, base_offset: Offset, data: bytes, places: list[tuple[int, int]]) -> None:
        """Write whole batches in one piece; `places` are their offsets and positions in it.

        Raises OSError if the disk fails.
        """
        segment = self._segments[-1]
        if segment.size_bytes and segment.size_bytes + len(data) > self._segment_bytes:
            segment = Segment.create(self._fs, self._directory, base_offset)
            self._segments.append(segment)
            self._has_new_entries = True
        start = segment.size_bytes
        segment.append(data)
        for offset, position in places:
            segment.index(offset, start + position)
        if not self._dirty or self._dirty[-1] is not segment:
            self._dirty.append(segment)

    @property
    def is_dirty(self) -> bool:
        """True if written data exists whose flush has not begun."""
        return bool(self._dirty)

    def take_unflushed(self) -> tuple[tuple[Segment, ...], bool]:
        """Return the segments to flush, and whether the directory has to be flushed too."""
        unflushed = tuple(self._dirty), self._has_new_entries
        self._dirty.clear()
        self._has_new_entries = False
        return unflushed

    def flush_all(self) -> None:
        """Flush all that is left after a truncation. Raises OSError."""
        for segment in [s for s in self._dirty if s is not self._segments[-1]]:
            segment.file.fdatasync()
        self._segments[-1].file.fdatasync()
        self._fs.sync_dir(self._directory)
        self.take_unflushed()

    # --- reading ----------------------------------------------------------------------------------

    def read(self, start: Offset, end: Offset, bytes_max: int) -> bytes:
        """Read whole batches from the one that holds `start`, below `end`; at least one if any.

        Raises DamagedLogError if a batch fails verification.
        """
        parts: list[bytes] = []
        room = bytes_max
        for segment in self._segments[self._index(start) :]:
            if segment.base_offset >= end:
                break
            for batch in self._batches_from(segment, start):
                header = batch.header
                if header.last_offset >= end or (parts and header.size_bytes > room):
                    return b"".join(parts)
                parts.append(batch.data)
                room -= header.size_bytes
        return b"".join(parts)

    def _batches_from(self, segment: Segment, start: int) -> Iterator[FileBatch]:
        """Yield a segment's batches from the one that holds `start`; verify offset and epoch."""
        expected, position = segment.lookup(start)
        try:
            for batch in scan_batches(segment.file, segment.size_bytes, position):
                base, last = batch.header.base_offset, batch.header.last_offset
                if base != expected:
                    raise _misplaced(batch, f"offset {base}, not {expected}")
                if last >= start:
                    epoch = self._state.epoch_before(Offset(last + 1))
                    if batch.header.epoch != epoch:
                        raise _misplaced(batch, f"epoch {batch.header.epoch}, not {epoch}")
                    yield batch
                expected = last + 1
        except CorruptBatchError as error:
            raise DamagedLogError(
                f"{segment.path}: damaged at byte {error.position} ({error.reason}). This replica "
                "must not serve its log any more: restart it, recovery knows what to do"
            ) from error

    def _index(self, offset: int) -> int:
        """Return the index of the segment that holds `offset`."""
        index = len(self._segments) - 1
        while index > 0 and self._segments[index].base_offset > offset:
            index -= 1
        return index

    # --- truncation -------------------------------------------------------------------------------

    def truncation_position(self, offset: Offset) -> tuple[int, int, int | None]:
        """Return the segment index and position of the batch that begins at `offset`.

        The third value is the CRC of the batch before it. Raises TruncationPointError if no batch
        begins there.
        """
        index = self._index(max(offset - 1, self._state.log_start))
        segment, position, crc = self._segments[index], 0, None
        for batch in self._batches_from(segment, offset - 1):
            if batch.header.base_offset >= offset:
                break
            position, crc = batch.position + batch.header.size_bytes, batch.header.crc
            if batch.header.last_offset >= offset:
                raise TruncationPointError(f"{segment.path}: offset {offset} lies inside a batch")
        return index, position, crc

    def truncate(self, index: int, position: int) -> None:
        """Truncate everything from that position on. Raises OSError."""
        while len(self._segments) > index + 1:
            self._remove(self._segments[-1])
            del self._segments[-1]
        self._segments[index].truncate(position)
        self._dirty = [segment for segment in self._dirty if segment in self._segments]

    def restart(self, base_offset: Offset) -> None:
        """Remove everything, and restart at that offset. Raises OSError."""
        while self._segments:
            self._remove(self._segments[-1])
            del self._segments[-1]
        self._segments = [Segment.create(self._fs, self._directory, base_offset)]
        self._dirty.clear()

    def delete_below(self, offset: Offset) -> None:
        """Remove the segments that lie completely below `offset`. Raises OSError."""
        while len(self._segments) > 1 and self._segments[1].base_offset <= offset:
            self._remove(self._segments[0])
            del self._segments[0]
        self._fs.sync_dir(self._directory)

    def _remove(self, segment: Segment) -> None:
        segment.delete(self._fs)
        remove_indexes(self._fs, segment.path)

    def close(self) -> None:
        """Close the files; unflushed data stays unflushed."""
        for segment in self._segments:
            segment.file.close()


def _misplaced(batch: FileBatch, reason: str) -> CorruptBatchError:
    return CorruptBatchError(batch.position, reason)
