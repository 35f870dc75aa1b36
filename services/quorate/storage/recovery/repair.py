"""Applies the recovery decision to the directory in a crash-safe order.

First what must not be lost, then the lowered flushed end, then the log itself; last, when all of it
is on the disk, the flushed end again (rules `flushed_end_file`, `recovery_flush` and
`damaged_voter_heals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import ElectionState
from quorate.records.ids import Epoch, format_uuid
from quorate.storage import layout
from quorate.storage.file_system import copy_durably, remove_durably, write_atomically
from quorate.storage.flushed_end import FlushedEnd
from quorate.storage.healing import HealingState, write_healing
from quorate.storage.log.leader_epoch_checkpoint import encode_epochs, entries_between
from quorate.storage.log.metadata_log import MetadataLog
from quorate.storage.log.segment import Segment
from quorate.storage.meta_properties import add_directory_id, ensure_partition_metadata
from quorate.storage.quorum_state import write_quorum_state
from quorate.storage.recovery.quarantine import Quarantine

if TYPE_CHECKING:
    from quorate.raft.api import RecoveredState
    from quorate.records.ids import OffsetAndEpoch, ReplicaKey
    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import FileSystem
    from quorate.storage.flushed_end import FlushedEndFile
    from quorate.storage.meta_properties import MetaProperties
    from quorate.storage.recovery.log_decision import LogDecision
    from quorate.storage.recovery.log_scan import ScannedLog
    from quorate.storage.snapshots.snapshot_store import SnapshotStore
    from quorate.storage.storage_config import StorageConfig

_LEFTOVERS = (layout.PART_SUFFIX, layout.DELETED_SUFFIX, layout.TEMPORARY_SUFFIX)


class Repair:
    """The changes that one recovery makes to its directory."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        meta: MetaProperties,
        flushed_file: FlushedEndFile,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.log_dir = f"{directory}/{layout.LOG_DIR}"
        self.meta = meta
        self.flushed_file = flushed_file
        self.aside = Quarantine(fs, self.log_dir)

    def add_directory_id(self) -> str:
        """Give the directory its id before anything is written under it; return the finding."""
        path = f"{self.directory}/{layout.META_PROPERTIES}"
        add_directory_id(self.fs, path, self.meta.directory_id)
        named = format_uuid(self.meta.directory_id)
        return f"{path} had no directory.id: this directory is {named} from now on"

    def save_healing_state(
        self,
        before: HealingState,
        log_decision: LogDecision,
        voters: tuple[ReplicaKey, ...],
        *,
        abstains: bool,
    ) -> HealingState:
        """Persist what this replica must not lose, before anything else is touched."""
        remembered = log_decision.remembered_end
        healing = HealingState(remembered, voters if remembered else (), abstains)
        if healing != before and (remembered is not None or abstains):
            write_healing(self.fs, f"{self.directory}/{layout.HEALING}", healing)
        # An earlier process may have died between a rename and the sync of the directory, and the
        # content that recovery has just read there is about to be relied on.
        self.fs.sync_dir(self.directory)
        self.fs.sync_dir(self.log_dir)
        return healing

    def clear_healing_if_done(self, healing_state: HealingState, state: RecoveredState) -> None:
        """Remove an empty healing file, which a crash may have left behind."""
        assert healing_state.remembered_end == state.remembered_end
        if healing_state == HealingState():
            write_healing(self.fs, f"{self.directory}/{layout.HEALING}", healing_state)

    def save_election(self, state: RecoveredState, voters: VoterSet) -> None:
        """Persist the epoch of the log before flushed-end records how far the log reaches."""
        version = state.kraft_versions[-1].kraft_version if state.kraft_versions else 0
        write_quorum_state(
            self.fs,
            f"{self.log_dir}/{layout.QUORUM_STATE}",
            state.election or ElectionState(Epoch(0)),
            kraft_version=version,
            voters=voters,
        )

    def begin(self, state: RecoveredState, voters: VoterSet) -> None:
        """First start: write quorum-state before the first segment.

        See rule `quorum_state_required`.
        """
        self.save_election(state, voters)
        remove_durably(self.fs, f"{self.directory}/{layout.FIRST_BOOTSTRAP}")

    def remove_leftovers(self) -> list[str]:
        """Remove leftovers of an earlier process; return findings about rewritten files."""
        for directory in (self.directory, self.log_dir):
            for name in self.fs.list_dir(directory):
                if name.endswith(_LEFTOVERS):
                    self.fs.remove(f"{directory}/{name}")
        for name in self.fs.list_dir(self.log_dir):
            if name.endswith(layout.INDEX_SUFFIXES):
                self.fs.remove(f"{self.log_dir}/{name}")
        path = f"{self.log_dir}/{layout.PARTITION_METADATA}"
        was_missing = ensure_partition_metadata(self.fs, path)
        return [f"{path} was missing: written anew"] if was_missing else []

    def quarantine_snapshot(self, snapshots: SnapshotStore, snapshot_id: OffsetAndEpoch) -> None:
        """Quarantine a damaged snapshot."""
        self.aside.move(snapshots.path(snapshot_id))

    def open_log(
        self,
        scanned: ScannedLog,
        log_decision: LogDecision,
        state: RecoveredState,
        config: StorageConfig,
    ) -> MetadataLog:
        """Apply the decision to the log, flush it (rule `recovery_flush`), and open it."""
        last_crc = scanned.last_crc if log_decision.keeps_log else None
        entry = self._flushed_entry(log_decision.end, last_crc, state)
        if log_decision.is_damage:
            self.flushed_file.store(entry)
        if log_decision.keeps_log:
            segments = self._keep(scanned, is_damage=log_decision.is_damage)
        else:
            segments = self._restart(scanned, log_decision)
        for segment in segments:
            segment.file.fdatasync()
        self.fs.sync_dir(self.log_dir)
        self._write_epochs(state)
        self.flushed_file.store(entry)
        self.aside.remove_old()
        return MetadataLog(
            self.fs,
            self.log_dir,
            state,
            segments,
            self.flushed_file,
            meta=self.meta,
            last_crc=last_crc,
            segment_bytes=config.segment_bytes,
            cache_bytes=config.cache_bytes,
        )

    def _keep(self, scanned: ScannedLog, *, is_damage: bool) -> list[Segment]:
        """Truncate the log at its first inconsistency; damage is quarantined, a tail deleted."""
        last = scanned.segments[scanned.segment]
        for segment in reversed(scanned.segments[scanned.segment + 1 :]):
            if is_damage and segment.size_bytes:
                segment.file.close()
                self.aside.move(segment.path)
            else:
                segment.delete(self.fs)
        kept = scanned.segments[: scanned.segment + 1]
        if scanned.position < last.size_bytes and is_damage:
            kept[-1] = self._keep_prefix(last, scanned.position)
        elif scanned.position < last.size_bytes:
            last.truncate(scanned.position)
        return kept

    def _keep_prefix(self, segment: Segment, size_bytes: int) -> Segment:
        """Quarantine a copy of a damaged segment, then replace it by its valid prefix.

        In this order, a crash between the two steps cannot lose the valid part, of which no other
        replica may have a copy.
        """
        copy, temporary = self.aside.name(segment.path), layout.TEMPORARY_SUFFIX
        copy_durably(self.fs, segment.file, copy + temporary, segment.size_bytes)
        self.fs.rename(copy + temporary, copy)
        self.fs.sync_dir(self.log_dir)
        sound = segment.path + temporary
        copy_durably(self.fs, segment.file, sound, size_bytes)
        segment.file.close()
        self.fs.rename(sound, segment.path)
        segment.file = self.fs.open(segment.path)
        segment.size_bytes = size_bytes
        return segment

    def _restart(self, scanned: ScannedLog, log_decision: LogDecision) -> list[Segment]:
        """Replace the log by an empty one at the decision's end."""
        for segment in reversed(scanned.segments):
            if log_decision.is_damage and segment.size_bytes:
                segment.file.close()
                self.aside.move(segment.path)
            else:
                segment.delete(self.fs)
        return [Segment.create(self.fs, self.log_dir, log_decision.end.offset)]

    def _write_epochs(self, state: RecoveredState) -> None:
        path = f"{self.log_dir}/{layout.EPOCH_CHECKPOINT}"
        entries = entries_between(state.epochs, log_start=state.log_start, end=state.end.offset)
        data = encode_epochs(entries)
        if not self.fs.exists(path) or self.fs.read(path) != data:
            write_atomically(self.fs, path, data)

    def _flushed_entry(
        self, end: OffsetAndEpoch, last_crc: int | None, state: RecoveredState
    ) -> FlushedEnd:
        voters = state.voters[-1].voters.voters if state.voters else ()
        keys = tuple(voter.key for voter in voters)
        return FlushedEnd(
            end,
            last_crc,
            keys,
            len(keys),
            self.meta.cluster_id,
            self.meta.directory_id,
            state.remembered_end is not None or state.abstains,
        )
