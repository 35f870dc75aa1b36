"""The metadata log: append, flush, read, truncate and reset to a snapshot.

Appends go to the page cache immediately and are flushed in groups. `begin_flush` collects what
there is to flush, `FlushTicket.run` waits for the disk (in another thread, while appends continue),
and `finish_flush` returns the end that may now be acknowledged. Everything else runs in one thread.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import EpochStart
from quorate.raft.replication.log_state import LogState
from quorate.records.batch import iter_batches, read_header
from quorate.records.control import control_records
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.flushed_end import FlushedEnd, FlushedEndFile
from quorate.storage.layout import EPOCH_CHECKPOINT
from quorate.storage.log.batch_cache import BatchCache
from quorate.storage.log.leader_epoch_checkpoint import encode_epochs, entries_between
from quorate.storage.log.segments import Segments

if TYPE_CHECKING:
    from quorate.raft.api import RecoveredState
    from quorate.raft.messages import SnapshotInfo
    from quorate.records.control import ControlRecord
    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import FileSystem
    from quorate.storage.log.segment import Segment
    from quorate.storage.meta_properties import MetaProperties

# base offset, length, epoch, magic, CRC, attributes, last offset delta
_HEADER: Final = struct.Struct(">qiibIhi")
_LENGTH_END: Final = 12
_CONTROL_BIT: Final = 0x20
_FIRST_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class FlushTicket:
    """One flush: what was written before it began, in the order in which it must reach the disk.

    `run` blocks and may run in another thread; at most one ticket is in flight.
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
        """Wait until everything below `end` is on the disk. Raises OSError if the disk failed."""
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
    """The log of one replica, as recovered and as it has grown since."""

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
        self.segments = Segments(fs, directory, segments, self.state, segment_bytes=segment_bytes)
        self._flushed_end_file = flushed_end_file
        self._meta = meta
        self._last_crc = self._flushed_crc = last_crc
        self._is_healing = recovered.remembered_end is not None or recovered.abstains
        self._cache = BatchCache(cache_bytes)
        self._are_epochs_dirty = False
        self.failure: OSError | None = None

    # --- state ------------------------------------------------------------------------------------

    @property
    def end(self) -> OffsetAndEpoch:
        """The next offset, with the epoch of the last batch."""
        return self.state.end

    @property
    def flushed_end(self) -> OffsetAndEpoch:
        """The end of what is on the disk."""
        return self.state.flushed_end

    @property
    def log_start(self) -> Offset:
        return self.state.log_start

    @property
    def generation(self) -> int:
        """Incremented by every truncation and installed snapshot (rule `log_generation`)."""
        return self.state.generation

    @property
    def has_data(self) -> bool:
        """True if the first batches of the log contain a record of the state machine."""
        first = self.read(self.log_start, end=self.end.offset, bytes_max=_FIRST_BYTES)
        return any(not header.is_control for _, header in iter_batches(first))

    def voters_below(self, offset: int) -> VoterSet:
        """The voter set in effect after the records below `offset`."""
        return self.state.committed_voter_set(Offset(offset))

    def kraft_version_below(self, offset: int) -> int:
        """The kraft.version in effect after the records below `offset`."""
        for entry in reversed(self.state.kraft_versions):
            if entry.offset < offset:
                return entry.kraft_version
        return 0

    def fail(self, error: OSError) -> None:
        """Note that the disk failed: later writes are refused, none is retried.

        See rule `disk_fail_stop`.
        """
        self.failure = self.failure or error

    # --- appending --------------------------------------------------------------------------------

    def append(self, base_offset: Offset, data: bytes) -> None:
        """Write whole, stamped batches at the log's end: one write, not flushed.

        Raises ValueError if they do not continue the log, OSError if the disk fails.
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
        try:
            self.segments.append(base_offset, data, places)
        except OSError as error:
            self.fail(error)
            raise
        self._cache.append(base_offset, data)

    # --- flushing ---------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        """True if there is something to flush."""
        return self.segments.is_dirty

    def begin_flush(self) -> FlushTicket | None:
        """Return a ticket for what was written since the last one; None if nothing was."""
        self._check_disk()
        if not self.segments.is_dirty:
            return None
        epochs = encode_epochs(self._epoch_entries()) if self._are_epochs_dirty else None
        segments, has_new_entries = self.segments.take_unflushed()
        ticket = FlushTicket(
            self.state.generation,
            self.state.end,
            self._last_crc,
            self,
            segments,
            has_new_entries,
            epochs,
            self._flushed_entry(self.state.end, self._last_crc),
        )
        self._are_epochs_dirty = False
        return ticket

    def finish_flush(self, ticket: FlushTicket) -> OffsetAndEpoch:
        """Note what a completed ticket made durable; return the end to acknowledge.

        A ticket of an older generation changes nothing (rule `log_generation`).
        """
        assert ticket.is_done, "finish_flush comes after run"
        state = self.state
        if ticket.generation == state.generation and ticket.end.offset > state.flushed:
            state.flushed = ticket.end.offset
            self._flushed_crc = ticket.last_crc
        return state.flushed_end

    def write_flushed_end(self, entry: FlushedEnd) -> None:
        """Write the flushed end: the last step of a ticket, in its thread, as it may block."""
        self._flushed_end_file.write(entry)

    def sync_flushed_end(self) -> None:
        """Sync the flushed end, so that a power failure restores no older one; thread-safe."""
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

    def finish_healing(self) -> None:
        """Clear the mark that requires the healing file; durable before that file is removed."""
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
        if self.failure is not None:
            raise StorageError(
                f"{self.directory}: the disk has failed ({self.failure}); nothing is written any "
                "more. Mend the disk, then start this node again"
            )

    # --- reading ----------------------------------------------------------------------------------

    def read(self, start: Offset, *, end: Offset, bytes_max: int) -> bytes:
        """Read whole batches from the one that holds `start`, below `end`; at least one if any.

        Raises DamagedLogError if a batch on the disk fails verification.
        """
        cached = self.cached(start, end=end, bytes_max=bytes_max)
        return self.segments.read(start, end, bytes_max) if cached is None else cached

    def cached(self, start: Offset, *, end: Offset, bytes_max: int) -> bytes | None:
        """Read the same from memory; None if it is not cached."""
        if start < self.state.log_start:
            raise ValueError(f"offset {start} is below the log's start {self.state.log_start}")
        if start >= min(end, self.state.end.offset):
            return b""
        return self._cache.read(start, end=end, bytes_max=bytes_max)

    # --- truncation -------------------------------------------------------------------------------

    def truncate(self, to: OffsetAndEpoch, generation: int) -> None:
        """Truncate everything from `to` on, durable on return; no flush may be in flight.

        The flushed end is lowered durably before the log is touched: if it came back larger after a
        power failure, the shorter log would look damaged.
        """
        self._check_disk()
        state = self.state
        if not state.log_start <= to.offset <= state.end.offset:
            raise ValueError(f"cannot cut {state.log_start}..{state.end.offset} at {to.offset}")
        index, position, last_crc = self.segments.truncation_position(to.offset)
        try:
            if to.offset < state.flushed:
                self._flushed_end_file.store(self._flushed_entry(to, last_crc))
            self.segments.truncate(index, position)
            state.truncate(to)
            state.generation = generation
            self._last_crc = last_crc
            self._settle()
            if to.offset > state.flushed:
                self._flushed_end_file.write(self._flushed_entry(to, last_crc))
                state.flushed = to.offset
        except OSError as error:
            self.fail(error)
            raise

    def _settle(self) -> None:
        """Flush what is left after a truncation: the end is the flushed end again."""
        self.segments.flush_all()
        write_atomically(
            self.fs, f"{self.directory}/{EPOCH_CHECKPOINT}", encode_epochs(self._epoch_entries())
        )
        self._are_epochs_dirty = False
        self._flushed_crc = self._last_crc
        self._cache.clear()

    def reset_to_snapshot(
        self, snapshot: SnapshotInfo, voters: VoterSet | None, kraft_version: int, generation: int
    ) -> None:
        """Empty the log and restart it at the end of a durable snapshot; durable on return.

        After a crash in between, recovery finds a log that the snapshot supersedes, and completes
        this.
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
            self.segments.restart(state.log_start)
            self._settle()
        except OSError as error:
            self.fail(error)
            raise

    def advance_start(self, to: Offset, snapshots: list[SnapshotInfo]) -> None:
        """Move the log's start to the end of a kept snapshot; segments below it are deleted."""
        self._check_disk()
        state = self.state
        state.cleaned(to, snapshots)
        try:
            path = f"{self.directory}/{EPOCH_CHECKPOINT}"
            # A flush may be in flight in its thread and about to replace the file as well: with
            # either order, the file contains every epoch of what is flushed.
            write_atomically(self.fs, path, encode_epochs(self._epoch_entries()), by=".cleaned")
            self._flushed_end_file.store(self._flushed_entry(state.flushed_end, self._flushed_crc))
            self.segments.delete_below(to)
        except OSError as error:
            self.fail(error)
            raise

    def close(self) -> None:
        """Close the files; unflushed data stays unflushed."""
        self.segments.close()
        self._flushed_end_file.close()
