"""The metadata log: segments of record batches, appended, flushed, read, cut and restarted.

Appends go to the page cache at once and are flushed in groups: `begin_flush` names what there is to
flush, `FlushTicket.run` waits for the disk (in another thread, while appends go on), `finish_flush`
says what may now be acknowledged. All else is for one thread.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.raft.log_state import NO_VOTERS, LogState
from quorate.raft.messages import EpochStart
from quorate.records.batch import CorruptBatchError, iter_batches, read_header
from quorate.records.control import control_records
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.storage.cache import BatchCache
from quorate.storage.epoch_checkpoint import encode_epochs, entries_between
from quorate.storage.errors import DamagedLogError, MisplacedCutError, StorageError
from quorate.storage.files import write_atomically
from quorate.storage.flushed_end import FlushedEnd, FlushedEndFile
from quorate.storage.layout import EPOCH_CHECKPOINT
from quorate.storage.scan import scan_batches
from quorate.storage.segment import Segment, remove_indexes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.raft.api import RecoveredState
    from quorate.raft.messages import SnapshotInfo
    from quorate.records.control import ControlRecord
    from quorate.records.voters import VoterSet
    from quorate.storage.files import FileSystem
    from quorate.storage.meta import MetaProperties
    from quorate.storage.scan import FileBatch

# base offset, length, epoch, magic, CRC, attributes, last offset delta
_HEADER: Final = struct.Struct(">qiibIhi")
_LENGTH_END: Final = 12
_CONTROL_BIT: Final = 0x20
_FIRST_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class FlushTicket:
    """One flush: what was written before it began, in the order in which it must reach the disk.

    `run` blocks and may run in another thread; at most one ticket is under way.
    """

    generation: int
    end: OffsetAndEpoch
    last_crc: int | None
    log: MetadataLog
    segments: tuple[Segment, ...]
    has_new_entries: bool
    epochs: bytes | None
    flushed_end: FlushedEnd
    is_done: bool = field(default=False)

    def run(self) -> None:
        """Wait until everything below `end` is on the disk. Raises OSError: the disk failed."""
        try:
            for segment in self.segments:
                segment.file.fdatasync()
            if self.has_new_entries:
                self.log.fs.sync_dir(self.log.directory)
            if self.epochs is not None:
                path = f"{self.log.directory}/{EPOCH_CHECKPOINT}"
                write_atomically(self.log.fs, path, self.epochs)
            if self.generation == self.log.generation:
                self.log.write_flushed_end(self.flushed_end)
        except OSError as error:
            self.log.fail(error)
            raise
        self.is_done = True


class MetadataLog:
    """The log of one replica, as recovery found it and as it has grown since."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        recovered: RecoveredState,
        segments: list[Segment],
        flushed_end_file: FlushedEndFile,
        *,
        meta: MetaProperties,
        last_crc: int | None,
        segment_bytes: int,
        cache_bytes: int,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.state = LogState(recovered)
        self._segments = segments
        self._flushed_end_file = flushed_end_file
        self._meta = meta
        self._last_crc = self._flushed_crc = last_crc
        self._is_healing = recovered.remembered_end is not None
        self._segment_bytes = segment_bytes
        self._cache = BatchCache(cache_bytes)
        self._dirty: list[Segment] = []
        self._has_new_entries = False
        self._are_epochs_dirty = False
        self._failure: OSError | None = None

    # --- what there is ----------------------------------------------------------------------------

    @property
    def end(self) -> OffsetAndEpoch:
        """The next offset, with the epoch of the last batch."""
        return self.state.end

    @property
    def flushed_end(self) -> OffsetAndEpoch:
        """What is on the disk."""
        return self.state.flushed_end

    @property
    def log_start(self) -> Offset:
        return self.state.log_start

    @property
    def generation(self) -> int:
        """Raised by every truncation and installed snapshot (rule 14)."""
        return self.state.generation

    @property
    def has_data(self) -> bool:
        """Whether a record of the state machine stands among the first ones of the log."""
        first = self.read(self.log_start, end=self.end.offset, bytes_max=_FIRST_BYTES)
        return any(not header.is_control for _, header in iter_batches(first))

    @property
    def size_bytes(self) -> int:
        """All segments together."""
        return sum(segment.size_bytes for segment in self._segments)

    def bytes_from(self, offset: Offset) -> int:
        """The segments that would remain if the log started at `offset`."""
        following = [segment.base_offset for segment in self._segments[1:]]
        return sum(
            segment.size_bytes
            for segment, end in zip(self._segments, [*following, None], strict=True)
            if end is None or end > offset
        )

    def voters_below(self, offset: int) -> VoterSet:
        """The set that the records below `offset` put in force."""
        for entry in reversed(self.state.voters):
            if entry.offset < offset:
                return entry.voters
        return NO_VOTERS

    def kraft_version_below(self, offset: int) -> int:
        """The kraft.version that the records below `offset` put in force."""
        for entry in reversed(self.state.kraft_versions):
            if entry.offset < offset:
                return entry.kraft_version
        return 0

    def fail(self, error: OSError) -> None:
        """The disk failed: from now on every write is refused, none is tried again (rule 17)."""
        self._failure = error

    # --- appending --------------------------------------------------------------------------------

    def append(self, base_offset: Offset, data: bytes) -> None:
        """Write whole, stamped batches at the log's end: one write, not flushed.

        Raises ValueError where they do not continue the log, OSError when the disk fails.
        """
        self._check_disk()
        state = self.state
        next_offset, epoch, crc = int(state.end.offset), int(state.end.epoch), self._last_crc
        starts: list[EpochStart] = []
        controls: list[tuple[int, ControlRecord]] = []
        places: list[tuple[int, int]] = []
        position = 0
        while position < len(data):
            base, length, batch_epoch, _, crc, attributes, delta = _HEADER.unpack_from(
                data, position
            )
            if base != next_offset or batch_epoch < epoch or delta < 0:
                raise ValueError(
                    f"batch {base}@{batch_epoch} where {next_offset}@{epoch} ends the log"
                )
            if batch_epoch > epoch:
                epoch = batch_epoch
                starts.append(EpochStart(Epoch(epoch), Offset(base)))
            if attributes & _CONTROL_BIT:
                records = control_records(data, position, read_header(data, position))
                controls.extend(enumerate(records, start=base))
            places.append((base, position))
            next_offset = base + delta + 1
            position += _LENGTH_END + length
        if position != len(data) or base_offset != state.end.offset:
            raise ValueError(f"the batches at {base_offset} are not whole, or not at the log's end")
        self._write(Offset(base_offset), data, places)
        self._last_crc = crc
        self._are_epochs_dirty = self._are_epochs_dirty or bool(starts)
        state.append(OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(next_offset)), starts)
        for offset, record in controls:
            state.append_control(Offset(offset), record)

    def _write(self, base_offset: Offset, data: bytes, places: list[tuple[int, int]]) -> None:
        segment = self._segments[-1]
        try:
            if segment.size_bytes and segment.size_bytes + len(data) > self._segment_bytes:
                segment = Segment.create(self.fs, self.directory, base_offset)
                self._segments.append(segment)
                self._has_new_entries = True
            start = segment.size_bytes
            segment.append(data)
        except OSError as error:
            self.fail(error)
            raise
        for offset, position in places:
            segment.index(offset, start + position)
        if not self._dirty or self._dirty[-1] is not segment:
            self._dirty.append(segment)
        self._cache.append(base_offset, data)

    # --- flushing ---------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        """Whether there is something to flush."""
        return bool(self._dirty)

    def begin_flush(self) -> FlushTicket | None:
        """What has been written since the last ticket; None where that is nothing."""
        self._check_disk()
        if not self._dirty:
            return None
        epochs = encode_epochs(self._epoch_entries()) if self._are_epochs_dirty else None
        ticket = FlushTicket(
            self.state.generation,
            self.state.end,
            self._last_crc,
            self,
            tuple(self._dirty),
            self._has_new_entries,
            epochs,
            self._flushed_entry(self.state.end, self._last_crc),
        )
        self._dirty.clear()
        self._has_new_entries = self._are_epochs_dirty = False
        return ticket

    def finish_flush(self, ticket: FlushTicket) -> OffsetAndEpoch:
        """Note what a ticket that has run made durable; what may now be acknowledged.

        A ticket of an older generation changes nothing (rule 14).
        """
        assert ticket.is_done, "finish_flush comes after run"
        state = self.state
        if ticket.generation == state.generation and ticket.end.offset > state.flushed:
            state.flushed = ticket.end.offset
            self._flushed_crc = ticket.last_crc
        return state.flushed_end

    def write_flushed_end(self, entry: FlushedEnd) -> None:
        """The last thing that a ticket does, in its thread: a write may block, too."""
        self._flushed_end_file.write(entry)

    def sync_flushed_end(self) -> None:
        """Let a power cut bring back no older flushed end than this; may run in a thread."""
        self._flushed_end_file.sync()

    def _flushed_entry(self, end: OffsetAndEpoch, last_crc: int | None) -> FlushedEnd:
        voters = self.voters_below(end.offset)
        keys = tuple(voter.key for voter in voters)
        meta = self._meta
        return FlushedEnd(
            end,
            last_crc,
            keys,
            len(keys),
            meta.cluster_id,
            meta.directory_id,
            self._is_healing,
        )

    def healed(self) -> None:
        """The log has reached what it once was; durable before the healing file goes."""
        self._is_healing = False
        try:
            end = self.state.flushed_end
            self._flushed_end_file.store(self._flushed_entry(end, self._flushed_crc))
        except OSError as error:
            self.fail(error)
            raise

    def _epoch_entries(self) -> tuple[EpochStart, ...]:
        state = self.state
        return entries_between(state.epochs, log_start=state.log_start, end=state.end.offset)

    def _check_disk(self) -> None:
        if self._failure is not None:
            raise StorageError(
                f"{self.directory}: the disk has failed ({self._failure}); nothing is written any "
                "more. Mend the disk, then start this node again"
            )

    # --- reading ----------------------------------------------------------------------------------

    def read(self, start: Offset, *, end: Offset, bytes_max: int) -> bytes:
        """Whole batches from the one that holds `start`, below `end`, one at least where there is.

        Raises DamagedLogError when a batch on the disk does not check any more.
        """
        cached = self.cached(start, end=end, bytes_max=bytes_max)
        return self._read_disk(start, end, bytes_max) if cached is None else cached

    def cached(self, start: Offset, *, end: Offset, bytes_max: int) -> bytes | None:
        """What `read` would give, from memory; None where that does not have it."""
        if start < self.state.log_start:
            raise ValueError(f"offset {start} is below the log's start {self.state.log_start}")
        if start >= min(end, self.state.end.offset):
            return b""
        return self._cache.read(start, end=end, bytes_max=bytes_max)

    def _read_disk(self, start: Offset, end: Offset, bytes_max: int) -> bytes:
        parts: list[bytes] = []
        room = bytes_max
        for segment in self._segments[self._segment_index(start) :]:
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
        """The batches of a segment from the one that holds `start` on, each where it belongs."""
        expected, position = segment.place_before(start)
        try:
            for batch in scan_batches(segment.file, segment.size_bytes, position):
                base, last = batch.header.base_offset, batch.header.last_offset
                if base != expected:
                    raise _misplaced(batch, f"offset {base}, not {expected}")
                if last >= start:
                    epoch = self.state.epoch_before(Offset(last + 1))
                    if batch.header.epoch != epoch:
                        raise _misplaced(batch, f"epoch {batch.header.epoch}, not {epoch}")
                    yield batch
                expected = last + 1
        except CorruptBatchError as error:
            raise DamagedLogError(
                f"{segment.path}: damaged at byte {error.position} ({error.reason}). This replica "
                "must not serve its log any more: restart it, recovery knows what to do"
            ) from error

    def _segment_index(self, offset: int) -> int:
        """The segment that holds `offset`."""
        index = len(self._segments) - 1
        while index > 0 and self._segments[index].base_offset > offset:
            index -= 1
        return index

    # --- cutting ----------------------------------------------------------------------------------

    def truncate(self, to: OffsetAndEpoch, generation: int) -> None:
        """Cut everything from `to` on; durable on return, the flush in flight is over before.

        The flushed end is lowered durably before the log is touched: if it came back larger after
        a power cut, the shorter log would look damaged.
        """
        self._check_disk()
        state = self.state
        if not state.log_start <= to.offset <= state.end.offset:
            raise ValueError(f"cannot cut {state.log_start}..{state.end.offset} at {to.offset}")
        index = self._segment_index(max(to.offset - 1, state.log_start))
        position, last_crc = self._cut_position(self._segments[index], to.offset)
        try:
            if to.offset < state.flushed:
                self._flushed_end_file.store(self._flushed_entry(to, last_crc))
            for segment in reversed(self._segments[index + 1 :]):
                segment.delete(self.fs)
                remove_indexes(self.fs, segment.path)
            del self._segments[index + 1 :]
            self._segments[index].truncate(position)
            state.truncate(to)
            state.generation = generation
            self._last_crc = last_crc
            self._dirty = [segment for segment in self._dirty if segment in self._segments]
            self._settle()
            if to.offset > state.flushed:
                self._flushed_end_file.write(self._flushed_entry(to, last_crc))
                state.flushed = to.offset
        except OSError as error:
            self.fail(error)
            raise

    def _cut_position(self, segment: Segment, offset: int) -> tuple[int, int | None]:
        """Where the batch that begins at `offset` starts, and the CRC of the one before it."""
        position, crc = 0, None
        for batch in self._batches_from(segment, offset - 1):
            if batch.header.base_offset >= offset:
                break
            position, crc = batch.position + batch.header.size_bytes, batch.header.crc
            if batch.header.last_offset >= offset:
                raise MisplacedCutError(f"{segment.path}: offset {offset} lies inside a batch")
        return position, crc

    def _settle(self) -> None:
        """Flush whatever is left after a cut: the end is the flushed end again."""
        for segment in [s for s in self._dirty if s is not self._segments[-1]]:
            segment.file.fdatasync()
        self._segments[-1].file.fdatasync()
        self.fs.sync_dir(self.directory)
        write_atomically(
            self.fs, f"{self.directory}/{EPOCH_CHECKPOINT}", encode_epochs(self._epoch_entries())
        )
        self._dirty.clear()
        self._has_new_entries = self._are_epochs_dirty = False
        self._flushed_crc = self._last_crc
        self._cache.clear()

    def reset_to_snapshot(
        self, snapshot: SnapshotInfo, voters: VoterSet | None, kraft_version: int, generation: int
    ) -> None:
        """Empty the log and restart it at the end of a durable snapshot; durable on return.

        After a crash on the way recovery finds a log that the snapshot supersedes, and ends this.
        """
        self._check_disk()
        state = self.state
        state.restart_at(snapshot, voters, kraft_version)
        last = Offset(snapshot.snapshot_id.offset - 1)
        state.epochs = [EpochStart(snapshot.snapshot_id.epoch, last)]
        state.generation = generation
        self._last_crc = None
        try:
            self._flushed_end_file.store(self._flushed_entry(state.end, None))
            for segment in reversed(self._segments):
                segment.delete(self.fs)
                remove_indexes(self.fs, segment.path)
            self._segments = [Segment.create(self.fs, self.directory, state.log_start)]
            self._dirty.clear()
            self._settle()
        except OSError as error:
            self.fail(error)
            raise

    def advance_start(self, to: Offset, snapshots: list[SnapshotInfo]) -> None:
        """Move the log's start to the end of a kept snapshot; whole segments below it go."""
        self._check_disk()
        state = self.state
        state.cleaned(to, snapshots)
        try:
            path = f"{self.directory}/{EPOCH_CHECKPOINT}"
            # A flush may be under way in its thread, and be about to replace the file as well:
            # whichever comes last, no epoch of what is flushed is missing in it.
            write_atomically(self.fs, path, encode_epochs(self._epoch_entries()), by=".cleaned")
            self._flushed_end_file.store(self._flushed_entry(state.flushed_end, self._flushed_crc))
            while len(self._segments) > 1 and self._segments[1].base_offset <= to:
                self._segments[0].delete(self.fs)
                remove_indexes(self.fs, self._segments[0].path)
                del self._segments[0]
            self.fs.sync_dir(self.directory)
        except OSError as error:
            self.fail(error)
            raise

    def close(self) -> None:
        """Close the files; what was not flushed stays so."""
        for segment in self._segments:
            segment.file.close()
        self._flushed_end_file.close()


def _misplaced(batch: FileBatch, reason: str) -> CorruptBatchError:
    return CorruptBatchError(batch.position, reason)
