"""Checks a Fetch response against the committed log before a follower acts on it.

See rule `leader_contradiction`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.identity.log_identity import is_of_another_quorum
from quorate.raft.messages import FetchedBatches
from quorate.raft.replication.batch_validation import batch_problem

if TYPE_CHECKING:
    from quorate.raft.messages import FetchResponse
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Follower
    from quorate.records.ids import Offset, OffsetAndEpoch


class FetchResponseValidator:
    """Checks if a Fetch response can be from a leader that has all committed records."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    def find_contradiction(self, role: Follower, response: FetchResponse) -> str | None:
        """The contradiction in this response; None if it is plausible."""
        replica = self.replica
        info = response.leader
        if info.epoch == replica.epoch and info.leader_id not in (None, role.leader_id):
            return f"it names {info.leader_id} as leader of its epoch"
        if 0 <= response.high_watermark < replica.high_watermark:
            return f"its high watermark is {response.high_watermark}, {self._committed()}"
        marks = response.voters_known
        if marks and any(is_of_another_quorum(replica.log, mark) for mark in marks):
            return "its log is of another quorum: both have the same epoch where others vote"
        if response.diverging is not None:
            return self._why_not_cut(response.diverging)
        if response.snapshot_id is not None:
            return self._why_not_snapshot(response.snapshot_id)
        if isinstance(response.records, FetchedBatches):
            return batch_problem(
                response.records.batches, replica.log, epoch=replica.epoch, leader_id=role.leader_id
            )
        return None

    def shows_another_quorum(self, response: FetchResponse) -> bool:
        """True if no leader of this quorum sends this, even after loss of a disk.

        See rule `sole_voter_conflict`.
        """
        replica = self.replica
        if any(is_of_another_quorum(replica.log, mark) for mark in response.voters_known):
            return True
        if response.diverging is None:
            return False
        return replica.log.truncation_point(response.diverging).offset < replica.high_watermark

    def _committed(self) -> str:
        return f"and everything below {self.replica.high_watermark} is committed"

    def _why_not_cut(self, diverging: OffsetAndEpoch) -> str | None:
        """The problem with a divergence: it must be at or above the high watermark."""
        end, to = self.replica.log.end, self.replica.log.truncation_point(diverging)
        if to.offset >= end.offset:
            return (
                f"it diverges at {diverging}, where there is nothing to cut: the log ends at {end}"
            )
        if not self.may_truncate(to.offset):
            return f"it diverges at {diverging}, {self._committed()}"
        return None

    def may_truncate(self, to: Offset) -> bool:
        """True if a truncation to `to` keeps all committed records."""
        return to >= self.replica.high_watermark

    def _why_not_snapshot(self, snapshot_id: OffsetAndEpoch) -> str | None:
        """The problem with a snapshot: it must have new records, and a plausible epoch."""
        replica = self.replica
        if snapshot_id.offset <= replica.high_watermark:
            return f"it offers snapshot {snapshot_id}, {self._committed()}"
        if (
            not replica.log.epoch_before(replica.high_watermark)
            <= snapshot_id.epoch
            <= replica.epoch
        ):
            return f"it offers snapshot {snapshot_id} in epoch {replica.epoch}, {self._committed()}"
        return None
