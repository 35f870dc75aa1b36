"""The only code that changes role, epoch and vote; election state is persisted first.

The save is a barrier effect before any effect that depends on it, so that a crash between two
effects never loses a vote (Kafka: QuorumState.durableTransitionTo).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft.election.epoch_start import append_epoch_start
from quorate.raft.messages import ElectionState
from quorate.raft.pending_requests import fail_pending_requests
from quorate.raft.replication.check_quorum import CheckQuorum
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
    VoteTally,
    role_name,
)
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.raft.trace_fields import role_change_fields
from quorate.records.ids import Epoch, NodeId

if TYPE_CHECKING:
    from quorate.raft.last_contact import LastContact
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Role
    from quorate.records.ids import Millis, ReplicaKey
    from quorate.records.voters import Endpoint


class RoleTransitions:
    """Role changes of one replica; `raft/roles.py` has the table of legal transitions."""

    def __init__(self, replica: Replica, last_contact: LastContact) -> None:
        self.replica = replica
        self.last_contact = last_contact

    def _enter(self, role: Role, cause: RoleChangeCause, why: str) -> None:
        replica, old = self.replica, self.replica.role
        if isinstance(old, Leader):
            fail_pending_requests(replica, old)
            # Set before the role, because a metrics scrape may see the new role in between.
            self.last_contact.needs_leader()
        # A distant peer that was asked for the leader may still answer, after this round.
        replica.request_manager.abandon(
            *(set(RequestKind) - {RequestKind.PROBE, RequestKind.DISCOVERY})
        )
        replica.request_manager.clear_backoff()
        names = f"{role_name(old)} becomes {role_name(role)}"
        self._take(role, cause, f"{why}: {names} in epoch {replica.epoch}")

    def _take(self, role: Role, cause: RoleChangeCause, text: str) -> None:
        old = self.replica.set_role(role)
        self.replica.out.note(
            TraceEventKind.ROLE_TAKEN, text, **role_change_fields(self.replica, old, cause)
        )

    # --- no leader --------------------------------------------------------------------------------

    def become_unattached(
        self,
        epoch: Epoch,
        cause: RoleChangeCause,
        why: str,
        *,
        voted: ReplicaKey | None = None,
        deadline: Millis | None = None,
    ) -> None:
        """Become unattached in this or a later epoch; `voted` records a vote granted in it."""
        replica = self.replica
        if deadline is None:
            deadline = self._unattached_deadline(epoch, is_vote=voted is not None)
        if epoch > replica.epoch:
            replica.leader_suspicion = None
            replica.leader_endpoints = ()
            replica.save_election(ElectionState(epoch, None, voted))
        elif voted is not None:
            replica.save_election(ElectionState(epoch, None, voted))
        self._enter(Unattached(deadline), cause, why)

    def _unattached_deadline(self, epoch: Epoch, *, is_vote: bool) -> Millis:
        """The deadline of the old timer, if any: a higher epoch must not postpone elections."""
        timers = self.replica.timers
        is_higher = epoch > self.replica.epoch
        match self.replica.role:
            case Unattached(election_deadline=deadline) | Resigned(election_deadline=deadline):
                if not is_vote and is_higher:
                    return max(deadline, timers.now)
            case Candidate(election_deadline=deadline):
                return max(deadline, timers.now)
            case Prospective(election_deadline=deadline, vote_tally=tally) if not tally.is_lost:
                return max(deadline, timers.now)
            case Follower(fetch_deadline=deadline) if is_higher and deadline > timers.now:
                return deadline
        return timers.after(timers.draw_election_timeout())

    # --- seeking votes ----------------------------------------------------------------------------

    def become_prospective(
        self, cause: RoleChangeCause, why: str, *, resume_deadline: Millis | None = None
    ) -> None:
        """Start a pre-vote round; a single voter becomes a candidate directly."""
        timers = self.replica.timers
        deadline = timers.after(timers.draw_election_timeout())
        role = Prospective(self.new_tally(), deadline, resume_deadline)
        self._enter(role, cause, why)
        if role.vote_tally.is_won:
            self.become_candidate(RoleChangeCause.PRE_VOTES_GRANTED, "no other voter to ask")

    def become_candidate(self, cause: RoleChangeCause, why: str) -> None:
        """Raise the epoch by one, vote for this replica, request the other votes."""
        replica = self.replica
        replica.leader_endpoints = ()
        replica.save_election(ElectionState(Epoch(replica.epoch + 1), None, replica.key))
        self._enter_candidate(cause, why)

    def resume_candidate(self) -> None:
        """Request votes in the epoch in which this replica voted for itself before its restart."""
        self._enter_candidate(RoleChangeCause.STARTUP, "was a candidate before the restart")

    def _enter_candidate(self, cause: RoleChangeCause, why: str) -> None:
        replica = self.replica
        deadline = replica.timers.after(replica.timers.draw_election_timeout())
        role = Candidate(self.new_tally(), deadline)
        if isinstance(replica.role, Prospective):
            self._enter(role, cause, why)
        else:
            self._take(role, cause, f"{why}: candidate in epoch {replica.epoch}")
        if role.vote_tally.is_won:
            self.become_leader()

    def new_tally(self) -> VoteTally:
        """A new round of votes, with only this voter's own vote."""
        replica = self.replica
        votes: dict[NodeId, bool | None] = {voter.key.node_id: None for voter in replica.voters}
        if replica.is_voter:
            votes[replica.node_id] = True
        return VoteTally(votes, replica.voters.majority)

    # --- following --------------------------------------------------------------------------------

    def become_follower(
        self,
        epoch: Epoch,
        leader_id: NodeId,
        endpoints: tuple[Endpoint, ...],
        cause: RoleChangeCause,
        why: str,
        *,
        resume_deadline: Millis | None = None,
    ) -> None:
        """Follow `leader_id`; the vote given in this epoch is kept."""
        replica = self.replica
        assert leader_id != replica.node_id, "a replica does not follow itself"
        voted = replica.election.voted if epoch == replica.epoch else None
        if resume_deadline is None:
            replica.leader_suspicion = None
        if endpoints:
            replica.leader_endpoints = endpoints
        elif replica.election.leader_id != leader_id or epoch != replica.epoch:
            replica.leader_endpoints = ()
        replica.save_election(ElectionState(epoch, leader_id, voted))
        deadline = resume_deadline or replica.timers.after(replica.config.fetch_timeout_ms)
        self._enter(Follower(leader_id, deadline), cause, f"{why} (leader {leader_id})")
        replica.last_leader = replica.leader_info

    def yield_election(self, role: Follower) -> None:
        """Follow a lost leader without contact to it: another voter may campaign."""
        timers = self.replica.timers
        deadline = timers.after(timers.draw_election_timeout())
        self.replica.set_role(replace(role, fetch_deadline=deadline, has_fetched=False))

    # --- leading ----------------------------------------------------------------------------------

    def become_leader(self) -> None:
        """Become leader: durable first, then the records that start the epoch.

        The first leader of a quorum with voters in the log also writes kraft.version and the voter
        set, which until then are only in the bootstrap checkpoint (KIP-853, "First leader").
        """
        replica, role = self.replica, self.replica.role
        assert isinstance(role, Candidate)
        granted = tuple(NodeId(node) for node, vote in role.vote_tally.votes.items() if vote)
        replica.leader_suspicion = None
        replica.leader_endpoints = replica.config.endpoints
        replica.save_election(ElectionState(replica.epoch, replica.node_id, replica.election.voted))
        leader = Leader(
            epoch_start=replica.log.end.offset,
            elected_ms=replica.timers.now,
            check_quorum=CheckQuorum(replica.timers.check_quorum_deadline()),
            begin_epoch_deadline=replica.timers.now,
        )
        self._enter(
            leader, RoleChangeCause.VOTES_GRANTED, f"{len(granted)} of {len(replica.voters)} votes"
        )
        replica.last_leader = replica.leader_info
        append_epoch_start(replica, granted)

    def become_resigned(
        self, preferred: tuple[ReplicaKey, ...], cause: RoleChangeCause, why: str
    ) -> None:
        """Resign within the epoch; there is nothing to save, since the leader stays the same."""
        self._enter(self._become_resigned(preferred), cause, why)

    def resume_resigned(self) -> None:
        """Resign as a leader that restarted within its epoch.

        Unflushed records of this epoch may be lost: a leader that continued could use an
        (offset, epoch) twice, and so could another candidate with this replica's vote.
        """
        text = f"led epoch {self.replica.epoch} before the restart: resigned"
        self._take(self._become_resigned(()), RoleChangeCause.STARTUP, text)

    def _become_resigned(self, preferred: tuple[ReplicaKey, ...]) -> Resigned:
        """The role of a leader that ended its epoch and notifies all other voters."""
        replica = self.replica
        others = {v.key.node_id: None for v in replica.voters if v.key.node_id != replica.node_id}
        return Resigned(
            replica.timers.after(replica.timers.draw_election_timeout()), others, preferred
        )
