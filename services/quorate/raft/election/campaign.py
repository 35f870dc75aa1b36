"""Runs pre-vote and vote rounds: sends requests, counts votes, handles election timeouts.

KIP-595 (elections), KIP-996 (pre-vote), rules `removed_voter_may_campaign`, `unready_voter_waits`
and `disk_call_deadline`. `vote_handler` grants votes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestFailure
from quorate.raft.election.pre_vote_leases import LEASE_MAX_SHARE, LEASE_SHARE, RENEWAL_SHARE
from quorate.raft.messages import VoteRequest, VoteResponse
from quorate.raft.request_manager import InFlightRequest, RequestKind
from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.raft.voter_addresses import WRONG_NODE_ERRORS
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis

if TYPE_CHECKING:
    from quorate.raft.election.failure_detector import LeaderFailureDetector
    from quorate.raft.election.leader_updates import LeaderUpdates
    from quorate.raft.election.pre_vote_leases import PreVoteLeases
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.replica import Replica

# Minimum delay before a lost round is repeated, as a fraction of the election timeout.
RETRY_SHARE: Final = 6
RETRY_DOUBLINGS_MAX: Final = 8
# Fraction of the election timeout after which a voter that has not answered is asked again, so that
# the loss of one request does not fail the round. A late answer to the first request counts, too.
REPEAT_SHARE: Final = 4
_NOMINEES: Final = (Prospective, Candidate)


class Campaign:
    """Vote and pre-vote rounds of one replica."""

    def __init__(
        self,
        replica: Replica,
        role_transitions: RoleTransitions,
        leader_updates: LeaderUpdates,
        leader_failure_detector: LeaderFailureDetector,
        pre_vote_leases: PreVoteLeases,
    ) -> None:
        self.replica = replica
        self.role_transitions = role_transitions
        self.leader_updates = leader_updates
        self.leader_failure_detector = leader_failure_detector
        self.pre_vote_leases = pre_vote_leases

    # --- asking -----------------------------------------------------------------------------------

    def send_vote_requests(self) -> None:
        """Request a vote from every voter that has not answered and may be asked now.

        Pre-votes are requested repeatedly during the round: a voter that rejected may be free by
        now, and a granted pre-vote is a lease that expires. No request is sent before this
        replica's complete log is flushed: otherwise a crash could leave it with a shorter log than
        the one for which it got the votes.
        """
        replica = self.replica
        role = replica.role
        if not isinstance(role, _NOMINEES) or replica.log.flushed < replica.log.end.offset:
            return
        if isinstance(role, Prospective):
            if self.pre_vote_leases.quiet_until is not None:
                return
            self._expire_leases(role)
        now, asked_by = (
            replica.timers.now,
            replica.timers.after(-self.pre_vote_leases.share_ms(REPEAT_SHARE)),
        )
        for voter in replica.voters:
            node_id = voter.key.node_id
            is_final = (
                isinstance(role, Candidate) and role.vote_tally.votes.get(node_id) is not None
            )
            if is_final or node_id == replica.node_id:
                continue
            peer = replica.peer(voter)
            if peer is None or not replica.request_manager.may_resend(
                RequestKind.VOTE, node_id, now, asked_by
            ):
                continue
            request = VoteRequest(
                cluster_id=replica.config.cluster_id,
                voter=voter.key,
                replica=replica.key,
                replica_epoch=replica.epoch,
                last=replica.log.end,
                pre_vote=isinstance(role, Prospective),
                replica_endpoints=replica.config.endpoints,
            )
            replica.send(RequestKind.VOTE, peer, request)

    def _expire_leases(self, role: Prospective) -> None:
        """Drop pre-votes that were not renewed in time: another nominee may have them by now."""
        now = self.replica.timers.now
        for node_id, until in list(role.lease_expiry.items()):
            if until <= now:
                del role.lease_expiry[node_id]
                role.vote_tally.votes[node_id] = None

    # --- counting ---------------------------------------------------------------------------------

    def handle_vote_response(
        self, in_flight_request: InFlightRequest, response: VoteResponse | RequestFailure
    ) -> None:
        """Count a vote, or learn of a higher epoch."""
        replica = self.replica
        if in_flight_request.epoch != replica.epoch or not isinstance(
            replica.role, Prospective | Candidate
        ):
            return
        if isinstance(response, RequestFailure):
            replica.back_off(RequestKind.VOTE, in_flight_request.to)
            return
        replica.request_manager.succeeded(RequestKind.VOTE, in_flight_request.to)
        role = replica.role
        # A voter may still name the leader that this nominee has timed out on. This nominee knows
        # that leader, so it ignores the hint and counts the vote.
        if response.leader.epoch > replica.epoch or replica.election.leader_id is None:
            self.leader_updates.apply(response.leader, f"answer of {in_flight_request.to}")
        if replica.role is not role or in_flight_request.epoch != replica.epoch:
            return
        if response.error is not ErrorCode.NONE:
            text = f"{in_flight_request.to} answers Vote with {response.error.name}"
            replica.out.note(
                TraceEventKind.REFUSED_BY_PEER,
                text,
                peer=in_flight_request.to,
                error=response.error.name,
            )
            if response.error in WRONG_NODE_ERRORS and self._is_elsewhere(in_flight_request):
                replica.back_off(RequestKind.VOTE, in_flight_request.to)
            else:
                later = replica.timers.after(replica.config.request_timeout_ms)
                replica.request_manager.back_off(RequestKind.VOTE, in_flight_request.to, later)
            return
        if in_flight_request.to in role.vote_tally.votes:
            role.vote_tally.votes[in_flight_request.to] = response.vote_granted
        if isinstance(role, Prospective):
            role.lease_expiry.pop(in_flight_request.to, None)
            if response.vote_granted:
                role.lease_expiry[in_flight_request.to] = replica.timers.after(
                    self.pre_vote_leases.share_ms(LEASE_SHARE)
                )
            # The renewal is due a fixed time after the request was sent. Measured from the
            # response, it would come after the lease has expired if round trips are slow.
            again = Millis(in_flight_request.sent_ms + self.pre_vote_leases.share_ms(RENEWAL_SHARE))
            replica.request_manager.back_off(RequestKind.VOTE, in_flight_request.to, again)
            self._expire_leases(role)
        self._count(role)

    def _is_elsewhere(self, in_flight_request: InFlightRequest) -> bool:
        """True if the voter has another address than the one that was called."""
        voter = self.replica.voters.by_id(in_flight_request.to)
        peer = None if voter is None else self.replica.peer(voter)
        return peer is not None and peer != in_flight_request.at

    def _count(self, role: Prospective | Candidate) -> None:
        replica = self.replica
        match role:
            case Prospective(vote_tally=tally) if tally.is_won:
                why = f"{tally.granted} of {len(replica.voters)} pre-votes"
                self.role_transitions.become_candidate(RoleChangeCause.PRE_VOTES_GRANTED, why)
            case Prospective(vote_tally=tally) if tally.is_lost and not self._has_contenders(role):
                self._on_pre_vote_lost(role, RoleChangeCause.PRE_VOTE_REJECTED, "pre-vote lost")
            case Candidate(vote_tally=tally) if tally.is_won:
                self.role_transitions.become_leader()
            case Candidate(vote_tally=tally, has_lost=False) if tally.is_lost:
                role.has_lost = True
                text = "election lost: waits for the rest of its timeout"
                replica.out.note(TraceEventKind.ELECTION_LOST, text)
                self.leader_failure_detector.schedule_probe()

    def _has_contenders(self, role: Prospective) -> bool:
        """True if other nominees were seen lately, so that this one should continue.

        They have timed out on the leader, too, and the leases that they hold end soon. If this
        nominee returned to the leader, all of them would only start over simultaneously.
        """
        since = role.contender_seen_ms
        return (
            since is not None
            and self.replica.timers.now < since + self.pre_vote_leases.share_ms(LEASE_MAX_SHARE)
        )

    def _on_pre_vote_lost(self, role: Prospective, cause: RoleChangeCause, why: str) -> None:
        """Return to the leader if one is known, otherwise wait for another round (KIP-996).

        The next round comes soon, since the voters that rejected may lose the leader a moment
        later, or were nominees themselves. The delay grows with each round that fails without a
        response of the leader.
        """
        replica = self.replica
        replica.failed_rounds += 1
        retry = self._draw_retry()
        leader_id = replica.election.leader_id
        if self.leader_failure_detector.defer_campaign() and role.resume_deadline is not None:
            retry = role.resume_deadline
        if (
            leader_id is not None
            and leader_id != replica.node_id
            and replica.leader_peer() is not None
        ):
            self.role_transitions.become_follower(
                replica.epoch, leader_id, (), cause, why, resume_deadline=retry
            )
        else:
            self.role_transitions.become_unattached(replica.epoch, cause, why, deadline=retry)

    def _draw_retry(self) -> Millis:
        replica, timers = self.replica, self.replica.timers
        share = replica.config.election_timeout_ms // RETRY_SHARE
        delay = (share + timers.draw(share)) << min(replica.failed_rounds - 1, RETRY_DOUBLINGS_MAX)
        return timers.after(min(delay, timers.draw_election_timeout()))

    # --- timers -----------------------------------------------------------------------------------

    def expire(self) -> None:
        """Start, end or repeat an election that is due."""
        replica, timers = self.replica, self.replica.timers
        match replica.role:
            case Leader():
                pass
            case Follower(fetch_deadline=deadline) as role:
                if deadline <= timers.now:
                    self._on_fetch_timeout(role)
            case Unattached(election_deadline=deadline) as role if deadline <= timers.now:
                if not replica.may_campaign or replica.should_defer_campaign():
                    role.election_deadline = timers.after(timers.draw_election_timeout())
                else:
                    self.role_transitions.become_prospective(
                        RoleChangeCause.ELECTION_TIMEOUT, "no leader was found"
                    )
            case Prospective(election_deadline=deadline) as role if deadline <= timers.now:
                self._on_pre_vote_lost(
                    role, RoleChangeCause.PRE_VOTE_TIMED_OUT, "pre-vote timed out"
                )
            case Candidate(election_deadline=deadline) if deadline <= timers.now:
                self.role_transitions.become_prospective(
                    RoleChangeCause.ELECTION_TIMEOUT, "election timed out"
                )
            case Resigned(election_deadline=deadline) as role if deadline <= timers.now:
                if replica.rival is not None:
                    role.election_deadline = timers.after(timers.draw_election_timeout())
                    return
                epoch = Epoch(replica.epoch + 1)
                self.role_transitions.become_unattached(
                    epoch, RoleChangeCause.NO_SUCCESSOR, "no successor was heard of"
                )

    def _on_fetch_timeout(self, role: Follower) -> None:
        replica, becoming = self.replica, self.role_transitions
        leader = role.leader_id
        if replica.failed_rounds:
            why = f"still no fetch from leader {leader}"
        else:
            why = f"no fetch from leader {leader} for {replica.config.fetch_timeout_ms} ms"
        if not replica.may_campaign:
            becoming.become_unattached(replica.epoch, RoleChangeCause.FETCH_TIMEOUT, why)
        elif replica.should_defer_campaign():
            # It defers its campaign, so it must not claim to be in contact with the leader.
            becoming.yield_election(role)
        elif role.leader_resigned:
            is_voter = replica.voters.by_id(leader) is not None
            cause = RoleChangeCause.END_QUORUM_EPOCH if is_voter else RoleChangeCause.LEADER_REMOVED
            becoming.become_prospective(cause, f"leader {leader} resigned")
        else:
            becoming.become_prospective(RoleChangeCause.FETCH_TIMEOUT, why)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadline of the election timer, and those of repeated vote requests."""
        role = self.replica.role
        match role:
            case Leader():
                pass
            case Follower():
                due.append(role.fetch_deadline)
            case Unattached() | Prospective() | Candidate() | Resigned():
                due.append(role.election_deadline)
        if isinstance(role, Prospective):
            silent_until = self.pre_vote_leases.quiet_until
            if silent_until is not None:
                due.append(silent_until)
        if isinstance(role, _NOMINEES):
            repeat_ms = self.pre_vote_leases.share_ms(REPEAT_SHARE)
            due += self.replica.request_manager.resend_deadlines(
                RequestKind.VOTE, repeat_ms, self.replica.timers.now
            )
