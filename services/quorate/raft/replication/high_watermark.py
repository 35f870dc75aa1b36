"""Flushed end, high watermark and readable end of the log, and how the leader advances them.

The high watermark is the offset up to which a majority of the latest voter set has flushed, once
that includes a record of the leader's own epoch; it never decreases (Kafka: LeaderState;
rules `fetch_view_at_response` and `observer_lag_baseline`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Offset

if TYPE_CHECKING:
    from quorate.raft.replication.log_state import LogState
    from quorate.raft.roles import Leader
    from quorate.records.ids import ReplicaKey
    from quorate.records.voters import Voter, VoterSet


class CommitState:
    """Flushed end and high watermark of one replica, as follower and as leader."""

    def __init__(self, log: LogState, key: ReplicaKey) -> None:
        self._log = log
        self._key = key
        newest = log.newest_snapshot
        # A snapshot has only committed records, so the high watermark starts there
        # (rule `snapshot_within_flush`).
        self.high_watermark: Offset = newest.offset if newest else Offset(0)
        # As last reported by the leader; before that, as known from the disk.
        self.leader_high_watermark = self.high_watermark
        # The same, or None until the leader has reported one: this log may then lack any number of
        # committed records.
        self.reported_high_watermark: Offset | None = None

    def advance(self, to: Offset) -> bool:
        """Raise the high watermark; it never decreases."""
        if to <= self.high_watermark:
            return False
        assert to <= self._log.end.offset, "the high watermark lies within the log"
        self.high_watermark = to
        return True

    def on_log_reset(self) -> None:
        """Handle a log that now starts at the end of a snapshot, which is committed."""
        self.high_watermark = max(self.high_watermark, self._log.log_start)

    def on_leader_high_watermark(self, high_watermark: Offset) -> None:
        """Record the leader's high watermark; this log may not reach it yet."""
        self.leader_high_watermark = self.reported_high_watermark = high_watermark

    def possible_voter_sets(self) -> list[VoterSet]:
        """The voter sets that may be in effect, the latest first."""
        return self._log.possible_voter_sets(self.high_watermark)

    # --- a leader's view --------------------------------------------------------------------------

    def fetchable_end(self, key: ReplicaKey | None) -> Offset:
        """The end up to which this replica may read at the time of an answer."""
        return self.readable_by(is_voter=key is not None and key in self._log.voter_set)

    def readable_by(self, *, is_voter: bool) -> Offset:
        """Voters of the latest set may read the complete log, others committed records.

        See rule `fetch_view_at_response`. Rule `observer_lag_baseline`: the lag of a replica is
        measured from the same end.
        """
        return self._log.end.offset if is_voter else self.high_watermark

    def local_flushed_end(self) -> Offset:
        """The leader's own flushed end."""
        return self._log.flushed

    def flushed_end_of(self, role: Leader, voter: Voter) -> Offset:
        """The flushed end of one voter, as far as this leader knows."""
        if voter.key.node_id == self._key.node_id and voter.key.directory_id in (
            None,
            self._key.directory_id,
        ):
            return self.local_flushed_end()
        progress = role.progress.get(voter.key)
        if progress is None or progress.fetch_offset is None:
            return Offset(0)
        return progress.fetch_offset

    def majority_flushed_end(self, role: Leader) -> Offset:
        """The end that a majority of the latest voter set has flushed."""
        ends = [self.flushed_end_of(role, voter) for voter in self._log.voter_set.voters]
        ends.sort(reverse=True)
        return ends[len(ends) // 2] if ends else Offset(0)

    def covers_own_epoch(self, role: Leader, end: Offset) -> bool:
        """True if `end` includes a record of the leader's own epoch: no commit before that."""
        return end > role.epoch_start

    def has_committed_in_epoch(self, role: Leader) -> bool:
        """True if it has committed in its epoch; before that more may be committed than known."""
        return self.covers_own_epoch(role, self.high_watermark)

    def reportable_high_watermark(self, role: Leader) -> Offset | None:
        """The high watermark, or None until this leader has committed in its own epoch."""
        return self.high_watermark if self.has_committed_in_epoch(role) else None

    def advance_to_majority(self, role: Leader) -> bool:
        """Commit what a majority has flushed. Returns True if the high watermark rose."""
        end = self.majority_flushed_end(role)
        return self.covers_own_epoch(role, end) and self.advance(end)
