"""A process that was asked to stop (rule 25): it finishes what it began, and begins nothing.

It neither campaigns nor joins any more. A leader takes no more records, waits until those that it
has are committed, hands over by EndQuorumEpoch, and ends when somebody else leads; everybody else
ends at once. One that runs out of time says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import ShutdownComplete
from quorate.raft.notes import Cause
from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Resigned

if TYPE_CHECKING:
    from quorate.raft.leading import Leading
    from quorate.raft.replica import Replica
    from quorate.records.ids import Millis


class Stopping:
    """The end of one replica."""

    def __init__(self, replica: Replica, leading: Leading) -> None:
        self.r = replica
        self.leading = leading
        self.commit_deadline: Millis | None = None

    def begin(self, timeout_ms: Millis) -> None:
        """Stop within that time; a second request changes nothing."""
        r = self.r
        if r.is_stopping:
            return
        r.is_stopping = True
        r.shutdown_deadline = r.after(timeout_ms)
        # Half of the time is left for the election of a successor.
        self.commit_deadline = r.after(min(timeout_ms // 2, r.config.election_timeout_ms))
        match r.role:
            case Prospective() | Candidate():
                r.become_unattached(r.epoch, Cause.SHUTDOWN, "asked to stop")
            case Leader() | Resigned():
                r.owes_successor = not r.is_only_voter

    def expire(self) -> None:
        """Hand over what cannot be committed in time all the same."""
        r = self.r
        if r.is_stopping and self.commit_deadline is not None and self.commit_deadline <= r.now:
            self.commit_deadline = None
            self._hand_over("shutting down, with records that are not committed")

    def drive(self) -> None:
        """Hand over as soon as nothing is left to commit."""
        r = self.r
        if r.shutdown_deadline is not None and r.high_watermark >= r.log.end.offset:
            self._hand_over("shutting down")

    def complete(self) -> None:
        """End, after all that this step has to say."""
        r = self.r
        if r.shutdown_deadline is None:
            return
        if self._is_over() or r.shutdown_deadline <= r.now:
            r.shutdown_deadline = None
            r.emit(ShutdownComplete(in_time=self._is_over()))

    def _hand_over(self, why: str) -> None:
        if isinstance(self.r.role, Leader) and not self.r.is_only_voter:
            self.leading.resign(Cause.SHUTDOWN, why)

    def _is_over(self) -> bool:
        r = self.r
        match r.role:
            case Leader():
                return r.is_only_voter and r.high_watermark >= r.log.end.offset
            case Follower(has_ended=False):
                return True
        return not r.owes_successor or r.is_only_voter or not r.is_voter or self._is_alone()

    def _is_alone(self) -> bool:
        """Whether nobody is there to hand over to: no process of another voter can be reached."""
        r = self.r
        others = {voter.key.node_id for voter in r.voters} - {r.node_id}
        return r.unreachable.issuperset(others)

    def add_deadlines(self, due: list[Millis]) -> None:
        """When to hand over, and when to end, at the latest."""
        r = self.r
        if r.shutdown_deadline is not None:
            due.append(r.shutdown_deadline)
            if self.commit_deadline is not None:
                due.append(self.commit_deadline)
