"""Contradictions that make recovery refuse a directory, with the remedy.

See rules `damaged_voter_heals` and `quorum_state_required`. All of them are checked before anything
has been changed. Each check raises StorageError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.election.epoch_guard import EPOCH_ACCEPTED_MAX
from quorate.records.ids import format_uuid
from quorate.storage import layout
from quorate.storage.errors import FORMAT_EMPTY_HINT, StorageError

if TYPE_CHECKING:
    from quorate.raft.messages import ElectionState, SnapshotInfo
    from quorate.records.ids import OffsetAndEpoch, ReplicaKey
    from quorate.storage.flushed_end import FlushedEnd
    from quorate.storage.healing import HealingState
    from quorate.storage.log.segment import Segment
    from quorate.storage.meta_properties import MetaProperties
    from quorate.storage.recovery.directory_contents import DirectoryContents
    from quorate.storage.recovery.log_decision import LogDecision
    from quorate.storage.snapshots.snapshot_store import SnapshotStore, SnapshotSummary
    from quorate.storage.storage_config import StorageConfig


class StartupChecks:
    """The startup checks of one directory."""

    def __init__(self, directory: str, snapshots: SnapshotStore) -> None:
        self.directory = directory
        self.log_dir = f"{directory}/{layout.LOG_DIR}"
        self.snapshots = snapshots

    def check_expected_identity(
        self, path: str, meta: MetaProperties, wanted: StorageConfig
    ) -> None:
        """Check that the directory is the one that the settings name."""
        for name, value, expected in (
            ("node.id", meta.node_id, wanted.node_id),
            ("cluster.id", meta.cluster_id, wanted.cluster_id),
            ("directory.id", meta.directory_id, wanted.directory_id),
        ):
            if expected is not None and value != expected:
                raise _other_identity(path, name, value, expected)

    def check_owner(
        self, meta: MetaProperties, flushed: FlushedEnd | None, bootstrap: SnapshotSummary | None
    ) -> None:
        """Check that the log was written under the identity in meta.properties."""
        path = f"{self.directory}/{layout.META_PROPERTIES}"
        if flushed is not None:
            if flushed.cluster_id != meta.cluster_id:
                raise _other_identity(path, "cluster.id", meta.cluster_id, flushed.cluster_id)
            if flushed.directory_id != meta.directory_id:
                raise _other_identity(path, "directory.id", meta.directory_id, flushed.directory_id)
        if bootstrap is not None and bootstrap.voters is not None:
            first = bootstrap.voters.by_id(meta.node_id)
            known = None if first is None else first.key.directory_id
            if known is not None and known != meta.directory_id:
                raise _other_identity(path, "directory.id", meta.directory_id, known)

    def check_quorum_state_present(
        self, segments: list[Segment], stored: list[SnapshotInfo], flushed: FlushedEnd | None
    ) -> None:
        """Check that quorum-state is missing only if the directory never held data.

        See rule `quorum_state_required`.
        """
        used = [segment.path for segment in segments if segment.size_bytes]
        used += [self.snapshots.path(info.snapshot_id) for info in stored]
        if flushed is not None:
            used.append(f"{self.directory}/{layout.FLUSHED_END}")
        if used:
            raise StorageError(
                f"{self.log_dir}/{layout.QUORUM_STATE} is missing, but {used[0]} exists: the voter "
                "may have voted, and without the file it could vote twice in one epoch. Restore it "
                f"from a backup; or, {FORMAT_EMPTY_HINT}"
            )

    def check_quorum_state_current(
        self, election: ElectionState, end: OffsetAndEpoch, how: str
    ) -> None:
        """Check that quorum-state is not a stale copy: this log never gets ahead of it."""
        if end.epoch > election.epoch:
            raise StorageError(
                f"{self.log_dir}/{layout.QUORUM_STATE}: epoch {election.epoch}, but this log {how} "
                f"{end}: the file is an old one, and votes may be missing in it. Restore the "
                f"newest one; or, {FORMAT_EMPTY_HINT}"
            )

    def check_epoch_range(self, end: OffsetAndEpoch) -> None:
        """Check that a quorum can have reached this epoch by elections (rule `input_bounds`)."""
        if end.epoch > EPOCH_ACCEPTED_MAX:
            raise StorageError(
                f"{self.log_dir}: the log ends at {end}, in an epoch which no quorum comes near by "
                f"elections. Restore the directory from a backup; or, {FORMAT_EMPTY_HINT}"
            )

    def check_healing_file(self, flushed: FlushedEnd | None, healing_state: HealingState) -> None:
        """Check that the healing file is current: without it damage would look healed."""
        is_nothing = healing_state.remembered_end is None and not healing_state.abstains
        if flushed is not None and flushed.is_healing and is_nothing:
            raise StorageError(
                f"{self.directory}/{layout.HEALING} is missing or an old one, but this log was "
                "damaged and has not healed, or came up empty and abstains: the file says how far "
                "it once came, or that it may not vote. Restore the "
                f"newest one; or, {FORMAT_EMPTY_HINT}"
            )

    def check_can_heal(
        self,
        voters: tuple[ReplicaKey, ...],
        directory_contents: DirectoryContents,
        log_decision: LogDecision,
    ) -> None:
        """Check that a damaged log is not that of a single voter."""
        alone = (None, directory_contents.meta.directory_id)
        if [key.node_id for key in voters] != [directory_contents.meta.node_id] or voters[
            0
        ].directory_id not in alone:
            return
        where = "; ".join(
            [*log_decision.why, *(reason for _, reason in directory_contents.damaged_snapshots)]
        )
        raise StorageError(
            f"{where}. Records from offset {log_decision.end.offset} to "
            f"{log_decision.remembered_end} were "
            "there once, and this is the only voter, so nobody can send them again: restore "
            f"{self.directory} from a backup" + self._way_out(directory_contents, log_decision)
        )

    def _way_out(self, directory_contents: DirectoryContents, log_decision: LogDecision) -> str:
        """Describe how to continue without the lost records: the files to truncate and to remove.

        Empty if no record of the log would be left.
        """
        log, cut = directory_contents.log, ""
        if log_decision.end.offset == 0:
            return ""
        doomed = [
            self.snapshots.path(snapshot_id)
            for snapshot_id, _ in directory_contents.damaged_snapshots
        ]
        doomed += [segment.path for segment in log.segments]
        if log_decision.keeps_log:
            kept = log.segments[log.segment]
            sound = [segment.path for segment in log.segments[: log.segment + 1]]
            doomed = [path for path in doomed if path not in sound]
            cut = f"cut {kept.path} to {log.position} bytes"
        if directory_contents.flushed is not None:
            doomed.append(f"{self.directory}/{layout.FLUSHED_END}")
        removal = f"remove {' '.join(doomed)}" if doomed else ""
        return f"; or, to lose those records for good, {' and '.join(filter(None, (cut, removal)))}"


def _other_identity(path: str, name: str, value: object, expected: object) -> StorageError:
    shown = [format_uuid(v) if isinstance(v, bytes) else v for v in (value, expected)]
    return StorageError(
        f"{path}: {name} is {shown[0]}, but this directory belongs to {shown[1]}. Point "
        "metadata.log.dir to the right directory, or put the right value back"
    )
