"""Graceful shutdown: drain appends, transfer leadership, then stop (rule `stopping_replica`).

A stopping replica neither campaigns nor joins. A leader accepts no more records, waits until the
appended ones are committed, transfers leadership by EndQuorumEpoch, and stops when another replica
leads. Any other replica stops immediately. A replica that runs out of time reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import ShutdownComplete
from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Resigned
from quorate.raft.trace_events import RoleChangeCause

if TYPE_CHECKING:
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.last_contact import LastContact
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader import LeaderReplication
    from quorate.records.ids import Millis


class GracefulShutdown:
    """Shutdown of one replica."""

    def __init__(
        self,
        replica: Replica,
        role_transitions: RoleTransitions,
        leader_replication: LeaderReplication,
        last_contact: LastContact,
    ) -> None:
        self.replica = replica
        self.role_transitions = role_transitions
        self.leader_replication = leader_replication
        self.last_contact = last_contact
        self.deadline: Millis | None = None
        self.commit_deadline: Millis | None = None
        # It led when shutdown was requested, so that another replica has to lead first.
        self.owes_successor = False

    def begin(self, timeout_ms: Millis) -> None:
        """Stop within that time in ms; a second request changes nothing."""
        replica = self.replica
        if replica.is_stopping:
            return
        replica.is_stopping = True
        self.deadline = replica.timers.after(timeout_ms)
        # Half of the time is left for the election of a successor.
        self.commit_deadline = replica.timers.after(
            min(timeout_ms // 2, replica.config.election_timeout_ms)
        )
        match replica.role:
            case Prospective() | Candidate():
                self.role_transitions.become_unattached(
                    replica.epoch, RoleChangeCause.SHUTDOWN, "asked to stop"
                )
            case Leader() | Resigned():
                self.owes_successor = not replica.is_only_voter

    def expire(self) -> None:
        """Transfer leadership even if not everything could be committed in time."""
        if self.commit_deadline is not None and self.commit_deadline <= self.replica.timers.now:
            self.commit_deadline = None
            self._hand_over("shutting down, with records that are not committed")

    def drive(self) -> None:
        """Transfer leadership as soon as nothing is left to commit."""
        replica = self.replica
        if self.deadline is not None and replica.high_watermark >= replica.log.end.offset:
            self._hand_over("shutting down")

    def complete(self) -> None:
        """Complete the shutdown, after all other effects of this step."""
        replica = self.replica
        if self.deadline is None:
            return
        if self._is_over() or self.deadline <= replica.timers.now:
            self.deadline = None
            replica.out.emit(ShutdownComplete(in_time=self._is_over()))

    def _hand_over(self, why: str) -> None:
        if isinstance(self.replica.role, Leader) and not self.replica.is_only_voter:
            self.leader_replication.resign(RoleChangeCause.SHUTDOWN, why)

    def _is_over(self) -> bool:
        replica = self.replica
        match replica.role:
            case Leader():
                return replica.is_only_voter and replica.high_watermark >= replica.log.end.offset
            case Follower(leader_resigned=False):
                return True
        # Without another replica to transfer to, waiting does not help.
        is_owed = self.owes_successor and replica.is_voter and not replica.is_only_voter
        return not is_owed or self.last_contact.is_isolated()

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadlines of the transfer and of the shutdown."""
        if self.deadline is not None:
            due.append(self.deadline)
            if self.commit_deadline is not None:
                due.append(self.commit_deadline)
