"""LogStore: performs the core's storage effects, in production and in the simulator.

All calls block until they are done; only the flush of appended batches may run in another thread
(`log.begin_flush`). Times are arguments: the store has no clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from quorate.raft.api import (
    ControlBatch,
    LogCleaned,
    LogTruncated,
    ProposedBatch,
    SnapshotChecked,
    SnapshotInstalled,
    SnapshotRefused,
    TruncationRefused,
)
from quorate.raft.messages import FetchedBatches, SnapshotInfo
from quorate.records.batch import read_header, restamp
from quorate.records.control import encode_control_batch
from quorate.records.ids import Offset, OffsetAndEpoch
from quorate.storage import layout
from quorate.storage.errors import DamagedSnapshotError, TruncationPointError
from quorate.storage.healing import HealingState, write_healing
from quorate.storage.log.files_in_use import FilesInUse
from quorate.storage.quorum_state import write_quorum_state
from quorate.storage.recovery.recovery import Recovered, recover
from quorate.storage.retention import snapshots_to_keep
from quorate.storage.rival_file import RememberedRival, write_rival
from quorate.storage.snapshots.writer import SnapshotWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.raft.api import (
        AppendToLog,
        CheckSnapshot,
        InstallSnapshot,
        SaveElection,
        SaveRival,
        TruncateLog,
        WriteSnapshotChunk,
    )
    from quorate.raft.messages import LogRange, SnapshotRange
    from quorate.storage.file_system import FileSystem
    from quorate.storage.snapshots.snapshot_store import SnapshotContent
    from quorate.storage.storage_config import StorageConfig


def _keep_quiet(what: str) -> None:
    del what


class LogStore:
    """The disk of one replica, as the core's effects use it."""

    def __init__(
        self, fs: FileSystem, metadata_log_dir: str, recovered: Recovered, config: StorageConfig
    ) -> None:
        self.log = recovered.log
        self.snapshots = recovered.snapshots
        self._fs = fs
        self._directory = metadata_log_dir
        self._config = config
        self.files = FilesInUse(
            fs,
            metadata_log_dir,
            recovered.log,
            recovered.meta,
            recovered.state.election,
            config.static_voters,
        )
        self._meta = recovered.meta
        self._healing_state = recovered.healing_state
        self._unsound: set[OffsetAndEpoch] = set()

    @classmethod
    def open(
        cls,
        fs: FileSystem,
        metadata_log_dir: str,
        config: StorageConfig,
        *,
        is_rescue: bool = False,
    ) -> tuple[LogStore, Recovered]:
        """Recover a directory. Raises StorageError if it cannot be used."""
        recovered = recover(fs, metadata_log_dir, config, is_rescue=is_rescue)
        return cls(fs, metadata_log_dir, recovered, config), recovered

    @property
    def start(self) -> OffsetAndEpoch:
        """The start of the log, with the epoch of the record before it."""
        state = self.log.state
        return OffsetAndEpoch(epoch=state.epoch_before(state.log_start), offset=state.log_start)

    # --- effects ----------------------------------------------------------------------------------

    def save_election(self, effect: SaveElection) -> None:
        """Save the election state; durable on return."""
        write_quorum_state(
            self._fs,
            f"{self._directory}/{layout.LOG_DIR}/{layout.QUORUM_STATE}",
            effect.state,
            kraft_version=effect.kraft_version,
            voters=effect.voters,
        )
        self.files.election_saved(effect)

    def append(self, effect: AppendToLog, *, timestamp_ms: int) -> None:
        """Write to the end of the log, without a flush.

        `timestamp_ms` goes into control batches of our own.
        """
        base_offset, epoch = effect.base_offset, effect.end.epoch
        match effect.payload:
            case ProposedBatch(data=batch):
                data = restamp(batch, base_offset, epoch)
            case ControlBatch(records=records):
                data = encode_control_batch(
                    records, timestamp_ms=timestamp_ms, base_offset=base_offset, epoch=epoch
                )
            case FetchedBatches(data=data):
                pass
            case payload:
                assert_never(payload)
        self.log.append(base_offset, data)
        assert self.log.end == effect.end, f"{self.log.end} is not what the core appended: {effect}"

    def truncate(self, effect: TruncateLog) -> LogTruncated | TruncationRefused:
        """Truncate the log, durable on return; the flush in flight must have completed."""
        try:
            self.log.truncate(effect.to, effect.generation)
        except TruncationPointError as error:
            return TruncationRefused(effect.generation, str(error))
        return LogTruncated(effect.to, effect.generation)

    def write_chunk(self, effect: WriteSnapshotChunk) -> None:
        """Write a chunk of a fetched snapshot, without a flush."""
        self.snapshots.write_chunk(effect.snapshot_id, position=effect.position, data=effect.data)

    def install(self, effect: InstallSnapshot) -> SnapshotInstalled | SnapshotRefused:
        """Verify a fetched snapshot, make it durable, restart the log at its end."""
        snapshot_id = effect.snapshot_id
        try:
            summary = self.snapshots.install(snapshot_id, kraft_version=effect.kraft_version)
        except DamagedSnapshotError as error:
            return SnapshotRefused(snapshot_id, str(error))
        info = SnapshotInfo(snapshot_id, self.snapshots.size(snapshot_id))
        self._unsound.clear()
        self.log.reset_to_snapshot(info, summary.voters, summary.kraft_version, effect.generation)
        for other in self.snapshots.stored():
            if other.snapshot_id != snapshot_id:
                self.snapshots.delete(other.snapshot_id)
        return SnapshotInstalled(
            snapshot=info,
            generation=effect.generation,
            voters=summary.voters,
            kraft_version=summary.kraft_version,
        )

    def end_healing(self) -> None:
        """Remove the healing target (rule `damaged_voter_heals`). Durable on return."""
        self._remember(HealingState(abstains=self._healing_state.abstains))

    def end_abstention(self) -> None:
        """End the abstention (rule `empty_log_abstains`). Durable on return."""
        self._remember(replace(self._healing_state, abstains=False))

    def save_rival(self, effect: SaveRival) -> None:
        """Persist that another quorum of this cluster was found. Durable on return.

        See rule `sole_voter_conflict`.
        """
        remembered = RememberedRival(self._meta, effect.rival)
        write_rival(self._fs, f"{self._directory}/{layout.RIVAL}", remembered)

    def _remember(self, healing_state: HealingState) -> None:
        if healing_state == HealingState():
            self.log.finish_healing()
        self._healing_state = healing_state
        write_healing(self._fs, f"{self._directory}/{layout.HEALING}", healing_state)

    def read_range(self, span: LogRange) -> bytes:
        """Read the batches that a Fetch response names. Raises DamagedLogError.

        See rule `disk_fail_stop`.
        """
        return self.log.read(span.start, end=span.end, bytes_max=span.bytes_max)

    def cached_range(self, span: LogRange) -> bytes | None:
        """Read the same from memory; None if the disk would have to be read."""
        return self.log.cached(span.start, end=span.end, bytes_max=span.bytes_max)

    def read_chunk(self, part: SnapshotRange) -> bytes:
        """Read the bytes that a FetchSnapshot response names; empty if the file was removed."""
        try:
            return self.snapshots.read(
                part.snapshot_id, position=part.position, size_bytes=part.bytes_max
            )
        except FileNotFoundError:
            return b""

    def check_snapshot(self, effect: CheckSnapshot) -> Iterator[SnapshotChecked | None]:
        """Read a snapshot to its end, batch by batch; the last item is the result.

        It only reads, so it may run concurrently with everything else.
        """
        snapshot_id = effect.snapshot_id
        try:
            for _ in self.snapshots.data_batches(snapshot_id):
                yield None
        except (DamagedSnapshotError, FileNotFoundError) as error:
            yield SnapshotChecked(snapshot_id, str(error))
        else:
            yield SnapshotChecked(snapshot_id, None)

    # --- own snapshots ----------------------------------------------------------------------------

    def begin_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, timestamp_ms: int, contained_ms: int | None = None
    ) -> SnapshotWriter:
        """Start a snapshot of what lies below `snapshot_id`; the caller appends and freezes it.

        The voters and the kraft.version are those in effect there. `timestamp_ms` is the time of
        writing, `contained_ms` that of the last record below, used if the log begins there. Raises
        ValueError for an offset that is not on the disk yet (rule `snapshot_within_flush`) or an
        epoch that is not ours.
        """
        log = self.log
        offset = snapshot_id.offset
        if not log.log_start <= offset <= log.flushed_end.offset:
            raise ValueError(f"snapshot {snapshot_id} outside {log.log_start}..{log.flushed_end}")
        if log.state.epoch_before(offset) != snapshot_id.epoch:
            raise ValueError(f"snapshot {snapshot_id} in a log with another epoch there")
        return SnapshotWriter(
            self._fs,
            self.snapshots.path(snapshot_id),
            snapshot_id,
            timestamp_ms=timestamp_ms,
            last_contained_log_timestamp_ms=self._timestamp_before(
                offset, timestamp_ms if contained_ms is None else contained_ms
            ),
            kraft_version=log.kraft_version_below(offset),
            voters=log.voters_below(offset),
        )

    def finish_snapshot(self, writer: SnapshotWriter) -> SnapshotInfo:
        """Make a snapshot durable; the result goes to the core as SnapshotStored."""
        info = writer.freeze()
        self.snapshot_stored(info)
        return info

    def snapshot_stored(self, info: SnapshotInfo) -> None:
        """Register a durable snapshot of our own: it replaces those found damaged."""
        self._unsound.discard(info.snapshot_id)
        self.log.state.store_snapshot(info)
        self.log.state.drop_snapshots(self._unsound)
        for snapshot_id in self._unsound:
            if self._fs.exists(self.snapshots.path(snapshot_id)):
                self.snapshots.quarantine(snapshot_id)
        self._unsound.clear()

    def mark_damaged(self, snapshot_id: OffsetAndEpoch) -> None:
        """Mark a snapshot as damaged. Its file stays until a newer one is stored.

        Until then older files are not cleaned: the next start may need them.
        """
        if self.log.state.snapshot(snapshot_id) is not None:
            self._unsound.add(snapshot_id)

    def read_snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotContent:
        """Read a whole snapshot. Raises DamagedSnapshotError if it fails verification."""
        return self.snapshots.content(snapshot_id)

    def _timestamp_before(self, offset: Offset, otherwise_ms: int) -> int:
        if offset == self.log.log_start:
            return otherwise_ms
        batch = self.log.read(Offset(offset - 1), end=self.log.end.offset, bytes_max=1)
        return read_header(batch).max_timestamp_ms

    # --- cleaning ---------------------------------------------------------------------------------

    def clean(
        self,
        replayed: Offset,
        *,
        now_ms: int | None = None,
        pinned: frozenset[OffsetAndEpoch] = frozenset(),
        report: Callable[[str], None] = _keep_quiet,
    ) -> LogCleaned | None:
        """Delete snapshots and segments that retention no longer keeps; None if all stay.

        `replayed` is the offset that the own state machine has applied. Age counts if `now_ms` is
        given. `pinned` snapshots stay, because peers fetch them. A damaged snapshot that would only
        be deleted is quarantined and passed to `report` (rule `snapshot_pinning`).
        """
        damaged: list[OffsetAndEpoch] = []

        def is_too_old(info: SnapshotInfo) -> bool:
            if now_ms is None or self._config.retention_ms < 0:
                return False
            try:
                written_ms = self.snapshots.last_contained_log_timestamp_ms(info.snapshot_id)
            except DamagedSnapshotError as error:
                damaged.append(info.snapshot_id)
                report(str(error))
                return True
            return now_ms - written_ms > self._config.retention_ms

        # Older files may be needed instead of a damaged snapshot.
        stored = self.snapshots.stored()
        limit = min(self._unsound, default=None)
        kept = snapshots_to_keep(
            [info for info in stored if limit is None or info.snapshot_id < limit],
            replayed=replayed,
            pinned=pinned,
            retention_bytes=self._config.retention_bytes,
            log_bytes_from=self.log.segments.bytes_from,
            is_too_old=is_too_old,
        )
        kept = [*kept, *(s for s in stored if limit is not None and s.snapshot_id >= limit)]
        if len(kept) == len(stored):
            return None
        start = max(kept[0].snapshot_id.offset, self.log.log_start)
        self.log.advance_start(start, list(kept))
        # Only snapshots in `stored`: a new one may have been published since.
        for info in stored:
            if info.snapshot_id in damaged:
                self.snapshots.quarantine(info.snapshot_id)
            elif info not in kept:
                self.snapshots.delete(info.snapshot_id)
        return LogCleaned(start, tuple(kept))

    def close(self) -> None:
        """Close the files; unflushed data stays unflushed."""
        self.log.close()
