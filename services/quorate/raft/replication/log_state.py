"""In-memory index of the log: offsets, epochs, snapshots and voter sets, without record data.

It answers the three questions of log reconciliation (KIP-595): the end offset of an epoch, whether
a replica at (offset, epoch) shares this log, and the offset to truncate to if it does not.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import EpochStart, KRaftVersionAt, SnapshotInfo, VotersAt
from quorate.records.control import ControlRecord, KRaftVersion, KRaftVoters
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.records.value_types import value_type
from quorate.records.voters import VoterSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from quorate.raft.api import RecoveredState

NO_VOTERS = VoterSet()


@value_type
class Valid:
    """The replica's log is a prefix of this log."""


VALID: Final = Valid()


@value_type
class Diverging:
    """The replica must truncate its log.

    `end` is the newest epoch of this log that is not above the replica's, and its end offset.
    """

    end: OffsetAndEpoch


@value_type
class NeedsSnapshot:
    """The replica's log ends before this log starts, or in an epoch before the oldest snapshot."""

    snapshot_id: OffsetAndEpoch


class LogState:
    """Offsets, epochs, snapshots and voter history between log start and log end."""

    def __init__(self, recovered: RecoveredState) -> None:
        self.log_start: Offset = recovered.log_start
        self.end: OffsetAndEpoch = recovered.end
        self.flushed: Offset = recovered.end.offset
        self.generation = 0
        self.epochs: list[EpochStart] = list(recovered.epochs)
        self.snapshots: list[SnapshotInfo] = list(recovered.snapshots)
        self.voters: list[VotersAt] = list(recovered.voters)
        self.kraft_versions: list[KRaftVersionAt] = list(recovered.kraft_versions)
        # Rule `damaged_voter_heals`: the end that this log had before a loss; None once it is
        # complete.
        self.remembered_end = recovered.remembered_end

    # --- voter sets and kraft.version ---------------------------------------------------------

    @property
    def voter_set(self) -> VoterSet:
        """The latest voter set, committed or not: it applies once it is appended (KIP-853)."""
        return self.voters[-1].voters if self.voters else NO_VOTERS

    @property
    def voters_offset(self) -> Offset:
        """Offset of the latest voter set; -1 if it came with the bootstrap or the settings."""
        return self.voters[-1].offset if self.voters else Offset(-1)

    @property
    def kraft_version_offset(self) -> Offset:
        """Offset of the latest kraft.version; -1 if it came with the bootstrap."""
        return self.kraft_versions[-1].offset if self.kraft_versions else Offset(-1)

    @property
    def kraft_version(self) -> int:
        """The latest kraft.version in the log, committed or not."""
        return self.kraft_versions[-1].kraft_version if self.kraft_versions else 0

    def committed_kraft_version(self, high_watermark: Offset) -> int:
        """The newest kraft.version known to be committed, or 0.

        A version from the bootstrap (offset -1) does not count: it may not be committed.
        """
        for entry in reversed(self.kraft_versions):
            if 0 <= entry.offset < high_watermark:
                return entry.kraft_version
        return 0

    @property
    def flushed_end(self) -> OffsetAndEpoch:
        """Flushed end on this replica's disk, with the epoch of the last record there."""
        return OffsetAndEpoch(epoch=self.epoch_before(self.flushed), offset=self.flushed)

    @property
    def is_healing(self) -> bool:
        """True if this log has not reached its former end again (rule `damaged_voter_heals`)."""
        return self.remembered_end is not None

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[-1].snapshot_id if self.snapshots else None

    def snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotInfo | None:
        """The stored snapshot with that id."""
        for info in self.snapshots:
            if info.snapshot_id == snapshot_id:
                return info
        return None

    def committed_voter_set(self, high_watermark: Offset) -> VoterSet:
        """The newest voter set known to be committed."""
        for entry in reversed(self.voters):
            if entry.offset < high_watermark:
                return entry.voters
        return NO_VOTERS

    def possible_voter_sets(self, high_watermark: Offset) -> list[VoterSet]:
        """The voter sets that may be in effect: the newest committed one and all after it."""
        sets: list[VoterSet] = []
        for entry in reversed(self.voters):
            sets.append(entry.voters)
            if entry.offset < high_watermark:
                break
        return sets

    # --- epochs -------------------------------------------------------------------------------

    def epoch_before(self, offset: Offset) -> Epoch:
        """The epoch of the record just below `offset`; 0 for an empty log."""
        if offset == self.end.offset:
            return self.end.epoch
        index = bisect_right(self.epochs, offset - 1, key=_start) - 1
        if index >= 0:
            return self.epochs[index].epoch
        for info in self.snapshots:
            if info.snapshot_id.offset >= offset:
                return info.snapshot_id.epoch
        return Epoch(0)

    def end_of_epoch(self, epoch: Epoch) -> OffsetAndEpoch | None:
        """The newest epoch of this log not above `epoch`, and its end offset."""
        index = bisect_right(self.epochs, epoch, key=_epoch) - 1
        if index < 0:
            return None
        after = index + 1
        end = self.epochs[after].start_offset if after < len(self.epochs) else self.end.offset
        return OffsetAndEpoch(epoch=self.epochs[index].epoch, offset=end)

    def validate(self, offset: Offset, epoch: Epoch) -> Valid | Diverging | NeedsSnapshot:
        """Compare a log that ends at (offset, epoch) with this one (Kafka: validate)."""
        if self.log_start == 0 and offset == 0 and epoch == 0:
            return VALID
        if self.snapshots:
            oldest, newest = self.snapshots[0].snapshot_id, self.snapshots[-1].snapshot_id
            base_epoch = self.epoch_before(self.log_start) if self.log_start > 0 else oldest.epoch
            if (
                offset < self.log_start
                or epoch < oldest.epoch
                or (offset == self.log_start and epoch != base_epoch)
            ):
                return NeedsSnapshot(newest)
            if offset == self.log_start:
                return VALID
        if self.epochs and epoch == self.epochs[-1].epoch and offset <= self.end.offset:
            # A shortcut for the usual case: the code below would have the same result.
            return VALID
        end = self.end_of_epoch(epoch)
        if end is None:
            return Diverging(OffsetAndEpoch(epoch=Epoch(0), offset=self.log_start))
        if end.epoch != epoch or end.offset < offset:
            return Diverging(end)
        return VALID

    def truncation_point(self, diverging: OffsetAndEpoch) -> OffsetAndEpoch:
        """The point to which to truncate when the leader reports divergence at `diverging`."""
        local = self.end_of_epoch(diverging.epoch)
        if local is None:
            offset = self.log_start
        elif local.epoch == diverging.epoch:
            offset = min(local.offset, diverging.offset)
        else:
            offset = local.offset
        offset = max(offset, self.log_start)
        return OffsetAndEpoch(epoch=self.epoch_before(offset), offset=offset)

    # --- changes ------------------------------------------------------------------------------

    def append(self, end: OffsetAndEpoch, epochs: Iterable[EpochStart] = ()) -> None:
        """Extend the log to `end`; `epochs` are those that began in the appended records."""
        self.epochs.extend(epochs)
        self.end = end

    def append_control(self, offset: Offset, record: ControlRecord) -> bool:
        """Apply a control record; returns True if it set the voter set."""
        match record:
            case KRaftVoters(voters=voters):
                self.voters.append(VotersAt(offset, voters))
                return True
            case KRaftVersion(kraft_version=kraft_version):
                self.kraft_versions.append(KRaftVersionAt(offset, kraft_version))
        return False

    def truncate(self, to: OffsetAndEpoch) -> None:
        """Remove everything from `to` on; voter sets and versions from there on roll back."""
        self.end = to
        self.flushed = min(self.flushed, to.offset)
        # Compared by epoch, not by offset: after a truncation to the log start, the epoch of the
        # record before it stays known.
        self.epochs = [entry for entry in self.epochs if entry.epoch <= to.epoch]
        self.voters = [entry for entry in self.voters if entry.offset < to.offset]
        self.kraft_versions = [e for e in self.kraft_versions if e.offset < to.offset]
        self.generation += 1

    def restart_at(
        self, snapshot: SnapshotInfo, voters: VoterSet | None, kraft_version: int
    ) -> None:
        """Empty the log and start it at the end of a fetched snapshot."""
        last = Offset(snapshot.snapshot_id.offset - 1)
        self.log_start = snapshot.snapshot_id.offset
        self.end = snapshot.snapshot_id
        self.flushed = self.log_start
        # The next batch may belong to the snapshot's epoch, so the log needs an entry for it.
        self.epochs = [EpochStart(snapshot.snapshot_id.epoch, last)]
        self.snapshots = [snapshot]
        if voters is not None:
            self.voters = [VotersAt(last, voters)]
        else:
            self.voters = [entry for entry in self.voters if entry.offset < 0]
        self.kraft_versions = [KRaftVersionAt(last, kraft_version)]

    def store_snapshot(self, snapshot: SnapshotInfo) -> None:
        """Record a durable snapshot of this replica, and drop older sets and versions.

        A snapshot with the same id replaces the earlier one.
        """
        if self.snapshots and self.snapshots[-1].snapshot_id > snapshot.snapshot_id:
            return
        self.drop_snapshots((snapshot.snapshot_id,))
        self.snapshots.append(snapshot)
        last = snapshot.snapshot_id.offset - 1
        while len(self.voters) > 1 and self.voters[1].offset <= last:
            del self.voters[0]
        while len(self.kraft_versions) > 1 and self.kraft_versions[1].offset <= last:
            del self.kraft_versions[0]

    def drop_snapshots(self, damaged: Collection[OffsetAndEpoch]) -> None:
        """Drop damaged snapshots that a newer one has replaced."""
        self.snapshots = [info for info in self.snapshots if info.snapshot_id not in damaged]

    def cleaned(self, log_start: Offset, snapshots: Iterable[SnapshotInfo]) -> None:
        """Record that old segments and snapshots are deleted."""
        self.log_start = log_start
        self.snapshots = list(snapshots)
        # The epoch of the record just below the log start stays known.
        while len(self.epochs) > 1 and self.epochs[1].start_offset < log_start:
            del self.epochs[0]


def _start(entry: EpochStart) -> Offset:
    return entry.start_offset


def _epoch(entry: EpochStart) -> Epoch:
    return entry.epoch
