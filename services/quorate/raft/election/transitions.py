"""The only code that changes role, epoch and vote; election state is persisted first.

The save is a barrier effect before any effect that depends on it, so that a crash between two
effects never loses a vote (Kafka: QuorumState.durableTransitionTo).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft.election.epoch_start import append_epoch_start
from quorate.raft.messages import ElectionState
from quorate.raft.pending_requests import end_waiting
from quorate.raft.request_manager import CallKind
from quorate.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Tally,
    Unattached,
    role_name,
)
from quorate.raft.trace_events import Cause, NoteKind
from quorate.raft.trace_fields import role_values
from quorate.records.ids import Epoch, NodeId

if TYPE_CHECKING:
    from quorate.raft.last_contact import Hearing
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Role
    from quorate.records.ids import Millis, ReplicaKey
    from quorate.records.voters import Endpoint


class Becoming:
    """Role changes of one replica; `raft/roles.py` has the table of legal transitions."""

    def __init__(self, replica: Replica, hearing: Hearing) -> None:
        self.r = replica
        self.hearing = hearing

    def _enter(self, role: Role, cause: Cause, why: str) -> None:
        r, old = self.r, self.r.role
        if isinstance(old, Leader):
            end_waiting(r, old)
            # Set before the role, because a metrics scrape may see the new role in between.
            self.hearing.needs_leader()
        # A distant peer that was asked for the leader may still answer, after this round.
        r.calls.abandon(*(set(CallKind) - {CallKind.PROBE, CallKind.DISCOVERY}))
        r.calls.clear_backoff()
        names = f"{role_name(old)} becomes {role_name(role)}"
        self._take(role, cause, f"{why}: {names} in epoch {r.epoch}")

    def _take(self, role: Role, cause: Cause, text: str) -> None:
        old = self.r.take_role(role)
        self.r.out.note(NoteKind.ROLE_TAKEN, text, **role_values(self.r, old, cause))

    # --- no leader --------------------------------------------------------------------------------

    def unattached(
        self,
        epoch: Epoch,
        cause: Cause,
        why: str,
        *,
        voted: ReplicaKey | None = None,
        deadline: Millis | None = None,
    ) -> None:
        """Become unattached in this or a later epoch; `voted` records a vote granted in it."""
        r = self.r
        if deadline is None:
            deadline = self._unattached_deadline(epoch, is_vote=voted is not None)
        if epoch > r.epoch:
            r.suspicion = None
            r.leader_endpoints = ()
            r.save_election(ElectionState(epoch, None, voted))
        elif voted is not None:
            r.save_election(ElectionState(epoch, None, voted))
        self._enter(Unattached(deadline), cause, why)

    def _unattached_deadline(self, epoch: Epoch, *, is_vote: bool) -> Millis:
        """The deadline of the old timer, if any: a higher epoch must not postpone elections."""
        timers = self.r.timers
        is_higher = epoch > self.r.epoch
        match self.r.role:
            case Unattached(election_deadline=deadline) | Resigned(election_deadline=deadline):
                if not is_vote and is_higher:
                    return max(deadline, timers.now)
            case Candidate(election_deadline=deadline):
                return max(deadline, timers.now)
            case Prospective(election_deadline=deadline, tally=tally) if not tally.is_lost:
                return max(deadline, timers.now)
            case Follower(fetch_deadline=deadline) if is_higher and deadline > timers.now:
                return deadline
        return timers.after(timers.draw_election_timeout())

    # --- seeking votes ----------------------------------------------------------------------------

    def prospective(self, cause: Cause, why: str, *, resume_deadline: Millis | None = None) -> None:
        """Start a pre-vote round; a single voter becomes a candidate directly."""
        timers = self.r.timers
        deadline = timers.after(timers.draw_election_timeout())
        role = Prospective(self.new_tally(), deadline, resume_deadline)
        self._enter(role, cause, why)
        if role.tally.is_won:
            self.candidate(Cause.PRE_VOTES_GRANTED, "no other voter to ask")

    def candidate(self, cause: Cause, why: str) -> None:
        """Raise the epoch by one, vote for this replica, request the other votes."""
        r = self.r
        r.leader_endpoints = ()
        r.save_election(ElectionState(Epoch(r.epoch + 1), None, r.key))
        self._enter_candidate(cause, why)

    def candidate_again(self) -> None:
        """Request votes in the epoch in which this replica voted for itself before its restart."""
        self._enter_candidate(Cause.STARTUP, "was a candidate before the restart")

    def _enter_candidate(self, cause: Cause, why: str) -> None:
        r = self.r
        deadline = r.timers.after(r.timers.draw_election_timeout())
        role = Candidate(self.new_tally(), deadline)
        if isinstance(r.role, Prospective):
            self._enter(role, cause, why)
        else:
            self._take(role, cause, f"{why}: candidate in epoch {r.epoch}")
        if role.tally.is_won:
            self.leader()

    def new_tally(self) -> Tally:
        """A new round of votes, with only this voter's own vote."""
        r = self.r
        votes: dict[NodeId, bool | None] = {voter.key.node_id: None for voter in r.voters}
        if r.is_voter:
            votes[r.node_id] = True
        return Tally(votes, r.voters.majority)

    # --- following --------------------------------------------------------------------------------

    def follower(
        self,
        epoch: Epoch,
        leader_id: NodeId,
        endpoints: tuple[Endpoint, ...],
        cause: Cause,
        why: str,
        *,
        resume_deadline: Millis | None = None,
    ) -> None:
        """Follow `leader_id`; the vote given in this epoch is kept."""
        r = self.r
        assert leader_id != r.node_id, "a replica does not follow itself"
        voted = r.election.voted if epoch == r.epoch else None
        if resume_deadline is None:
            r.suspicion = None
        if endpoints:
            r.leader_endpoints = endpoints
        elif r.election.leader_id != leader_id or epoch != r.epoch:
            r.leader_endpoints = ()
        r.save_election(ElectionState(epoch, leader_id, voted))
        deadline = resume_deadline or r.timers.after(r.config.fetch_timeout_ms)
        self._enter(Follower(leader_id, deadline), cause, f"{why} (leader {leader_id})")
        r.last_leader = r.leader_info

    def leave_to_others(self, role: Follower) -> None:
        """Follow a lost leader without contact to it: another voter may campaign."""
        timers = self.r.timers
        deadline = timers.after(timers.draw_election_timeout())
        self.r.take_role(replace(role, fetch_deadline=deadline, has_fetched=False))

    # --- leading ----------------------------------------------------------------------------------

    def leader(self) -> None:
        """Become leader: durable first, then the records that start the epoch.

        The first leader of a quorum with voters in the log also writes kraft.version and the voter
        set, which until then are only in the bootstrap checkpoint (KIP-853, "First leader").
        """
        r, role = self.r, self.r.role
        assert isinstance(role, Candidate)
        granted = tuple(NodeId(node) for node, vote in role.tally.votes.items() if vote)
        r.suspicion = None
        r.leader_endpoints = r.config.endpoints
        r.save_election(ElectionState(r.epoch, r.node_id, r.election.voted))
        leader = Leader(
            epoch_start=r.log.end.offset,
            elected_ms=r.timers.now,
            check_quorum_deadline=r.timers.check_quorum_deadline(),
            begin_epoch_deadline=r.timers.now,
        )
        self._enter(leader, Cause.VOTES_GRANTED, f"{len(granted)} of {len(r.voters)} votes")
        r.last_leader = r.leader_info
        append_epoch_start(r, granted)

    def resigned(self, preferred: tuple[ReplicaKey, ...], cause: Cause, why: str) -> None:
        """Resign within the epoch; there is nothing to save, since the leader stays the same."""
        self._enter(self._resigned(preferred), cause, why)

    def resigned_again(self) -> None:
        """Resign as a leader that restarted within its epoch.

        Unflushed records of this epoch may be lost: a leader that continued could use an
        (offset, epoch) twice, and so could another candidate with this replica's vote.
        """
        text = f"led epoch {self.r.epoch} before the restart: resigned"
        self._take(self._resigned(()), Cause.STARTUP, text)

    def _resigned(self, preferred: tuple[ReplicaKey, ...]) -> Resigned:
        """The role of a leader that ended its epoch and notifies all other voters."""
        r = self.r
        others = {v.key.node_id: None for v in r.voters if v.key.node_id != r.node_id}
        return Resigned(r.timers.after(r.timers.draw_election_timeout()), others, preferred)
