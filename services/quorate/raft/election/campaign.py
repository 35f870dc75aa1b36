"""Runs pre-vote and vote rounds: sends requests, counts votes, handles election timeouts.

KIP-595 (elections), KIP-996 (pre-vote), rules `removed_voter_may_campaign`, `unready_voter_waits`
and `disk_call_deadline`. `vote_handler` grants votes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import CallFailure
from quorate.raft.election.pre_vote_leases import ASK_SHARE, PROMISE_SHARE, TURN_SHARE
from quorate.raft.messages import VoteRequest, VoteResponse
from quorate.raft.request_manager import Call, CallKind
from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorate.raft.trace_events import Cause, NoteKind
from quorate.raft.voter_addresses import NOT_THE_ONE
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis

if TYPE_CHECKING:
    from quorate.raft.election.failure_detector import Suspecting
    from quorate.raft.election.leader_updates import Learning
    from quorate.raft.election.pre_vote_leases import Promises
    from quorate.raft.election.transitions import Becoming
    from quorate.raft.replica import Replica

# Minimum delay before a lost round is repeated, as a fraction of the election timeout.
RETRY_SHARE: Final = 6
RETRY_DOUBLINGS_MAX: Final = 8
# Fraction of the election timeout after which a voter that has not answered is asked again, so that
# the loss of one request does not fail the round. The first one may still be answered.
REPEAT_SHARE: Final = 4
_NOMINEES: Final = (Prospective, Candidate)


class Elections:
    """Vote and pre-vote rounds of one replica."""

    def __init__(
        self,
        replica: Replica,
        becoming: Becoming,
        learning: Learning,
        suspecting: Suspecting,
        promises: Promises,
    ) -> None:
        self.r = replica
        self.becoming = becoming
        self.learning = learning
        self.suspecting = suspecting
        self.promises = promises

    # --- asking -----------------------------------------------------------------------------------

    def ask(self) -> None:
        """Request a vote from every voter that has not answered and may be asked now.

        Pre-votes are requested repeatedly during the round: a voter that rejected may be free by
        now, and a granted pre-vote is a lease that expires. No voter is asked before the complete
        log is flushed: after a crash it could be shorter than when the votes were granted.
        """
        r = self.r
        role = r.role
        if not isinstance(role, _NOMINEES) or r.log.flushed < r.log.end.offset:
            return
        if isinstance(role, Prospective):
            if self.promises.silent_until is not None:
                return
            self._let_lapse(role)
        now, asked_by = r.timers.now, r.timers.after(-self.promises.part(REPEAT_SHARE))
        for voter in r.voters:
            node_id = voter.key.node_id
            is_final = isinstance(role, Candidate) and role.tally.votes.get(node_id) is not None
            if is_final or node_id == r.node_id:
                continue
            peer = r.peer(voter)
            if peer is None or not r.calls.may_repeat(CallKind.VOTE, node_id, now, asked_by):
                continue
            request = VoteRequest(
                cluster_id=r.config.cluster_id,
                voter=voter.key,
                replica=r.key,
                replica_epoch=r.epoch,
                last=r.log.end,
                pre_vote=isinstance(role, Prospective),
                replica_endpoints=r.config.endpoints,
            )
            r.send(CallKind.VOTE, peer, request)

    def _let_lapse(self, role: Prospective) -> None:
        """Drop pre-votes that were not renewed in time: another nominee may have them by now."""
        now = self.r.timers.now
        for node_id, until in list(role.promised_until.items()):
            if until <= now:
                del role.promised_until[node_id]
                role.tally.votes[node_id] = None

    # --- counting ---------------------------------------------------------------------------------

    def handle_response(self, call: Call, response: VoteResponse | CallFailure) -> None:
        """Count a vote, or learn of a higher epoch."""
        r = self.r
        if call.epoch != r.epoch or not isinstance(r.role, Prospective | Candidate):
            return
        if isinstance(response, CallFailure):
            r.back_off(CallKind.VOTE, call.to)
            return
        r.calls.succeeded(CallKind.VOTE, call.to)
        role = r.role
        # A voter may still name the leader that this nominee has lost. That is not news, and its
        # vote counts all the same.
        if response.leader.epoch > r.epoch or r.election.leader_id is None:
            self.learning.learn(response.leader, f"answer of {call.to}")
        if r.role is not role or call.epoch != r.epoch:
            return
        if response.error is not ErrorCode.NONE:
            text = f"{call.to} answers Vote with {response.error.name}"
            r.out.note(NoteKind.REFUSED_BY_PEER, text, peer=call.to, error=response.error.name)
            if response.error in NOT_THE_ONE and self._is_elsewhere(call):
                r.back_off(CallKind.VOTE, call.to)
            else:
                later = r.timers.after(r.config.request_timeout_ms)
                r.calls.back_off(CallKind.VOTE, call.to, later)
            return
        if call.to in role.tally.votes:
            role.tally.votes[call.to] = response.vote_granted
        if isinstance(role, Prospective):
            role.promised_until.pop(call.to, None)
            if response.vote_granted:
                role.promised_until[call.to] = r.timers.after(self.promises.part(PROMISE_SHARE))
            # Measured from the request: otherwise a pre-vote would expire before it is renewed if
            # the round trip takes as long as the delay.
            again = Millis(call.sent_ms + self.promises.part(ASK_SHARE))
            r.calls.back_off(CallKind.VOTE, call.to, again)
            self._let_lapse(role)
        self._count(role)

    def _is_elsewhere(self, call: Call) -> bool:
        """True if the voter has another address than the one that was called."""
        voter = self.r.voters.by_id(call.to)
        peer = None if voter is None else self.r.peer(voter)
        return peer is not None and peer != call.at

    def _count(self, role: Prospective | Candidate) -> None:
        r = self.r
        match role:
            case Prospective(tally=tally) if tally.is_won:
                why = f"{tally.granted} of {len(r.voters)} pre-votes"
                self.becoming.candidate(Cause.PRE_VOTES_GRANTED, why)
            case Prospective(tally=tally) if tally.is_lost and not self._has_rivals(role):
                self._lose_pre_vote(role, Cause.PRE_VOTE_REJECTED, "pre-vote lost")
            case Candidate(tally=tally) if tally.is_won:
                self.becoming.leader()
            case Candidate(tally=tally, has_lost=False) if tally.is_lost:
                role.has_lost = True
                text = "election lost: waits for the rest of its timeout"
                r.out.note(NoteKind.ELECTION_LOST, text)
                self.suspecting.look_again()

    def _has_rivals(self, role: Prospective) -> bool:
        """True if others have just lost the leader, too: their leases end soon, so continue.

        Returning to the leader would only make all of them start over simultaneously.
        """
        since = role.rival_ms
        return since is not None and self.r.timers.now < since + self.promises.part(TURN_SHARE)

    def _lose_pre_vote(self, role: Prospective, cause: Cause, why: str) -> None:
        """Return to the leader if one is known, otherwise wait for another round (KIP-996).

        The next round comes soon, since the voters that rejected may lose the leader a moment
        later, or were nominees themselves. The delay grows with each round that fails without a
        response of the leader.
        """
        r = self.r
        r.lost_rounds += 1
        retry = self._draw_retry()
        leader_id = r.election.leader_id
        if self.suspecting.put_off() and role.resume_deadline is not None:
            retry = role.resume_deadline
        if leader_id is not None and leader_id != r.node_id and r.leader_peer() is not None:
            self.becoming.follower(r.epoch, leader_id, (), cause, why, resume_deadline=retry)
        else:
            self.becoming.unattached(r.epoch, cause, why, deadline=retry)

    def _draw_retry(self) -> Millis:
        r, timers = self.r, self.r.timers
        share = r.config.election_timeout_ms // RETRY_SHARE
        delay = (share + timers.draw(share)) << min(r.lost_rounds - 1, RETRY_DOUBLINGS_MAX)
        return timers.after(min(delay, timers.draw_election_timeout()))

    # --- timers -----------------------------------------------------------------------------------

    def expire(self) -> None:
        """Start, end or repeat an election that is due."""
        r, timers = self.r, self.r.timers
        match r.role:
            case Leader():
                pass
            case Follower(fetch_deadline=deadline) as role:
                if deadline <= timers.now:
                    self._leader_is_lost(role)
            case Unattached(election_deadline=deadline) as role if deadline <= timers.now:
                if not r.may_campaign or r.waits_until_ready():
                    role.election_deadline = timers.after(timers.draw_election_timeout())
                else:
                    self.becoming.prospective(Cause.ELECTION_TIMEOUT, "no leader was found")
            case Prospective(election_deadline=deadline) as role if deadline <= timers.now:
                self._lose_pre_vote(role, Cause.PRE_VOTE_TIMED_OUT, "pre-vote timed out")
            case Candidate(election_deadline=deadline) if deadline <= timers.now:
                self.becoming.prospective(Cause.ELECTION_TIMEOUT, "election timed out")
            case Resigned(election_deadline=deadline) as role if deadline <= timers.now:
                if r.rival is not None:
                    role.election_deadline = timers.after(timers.draw_election_timeout())
                    return
                epoch = Epoch(r.epoch + 1)
                self.becoming.unattached(epoch, Cause.NO_SUCCESSOR, "no successor was heard of")

    def _leader_is_lost(self, role: Follower) -> None:
        r, becoming = self.r, self.becoming
        leader = role.leader_id
        if r.lost_rounds:
            why = f"still no fetch from leader {leader}"
        else:
            why = f"no fetch from leader {leader} for {r.config.fetch_timeout_ms} ms"
        if not r.may_campaign:
            becoming.unattached(r.epoch, Cause.FETCH_TIMEOUT, why)
        elif r.waits_until_ready():
            # It defers its campaign, so it must not claim to be in contact with the leader.
            becoming.leave_to_others(role)
        elif role.has_ended:
            is_voter = r.voters.by_id(leader) is not None
            cause = Cause.END_QUORUM_EPOCH if is_voter else Cause.LEADER_REMOVED
            becoming.prospective(cause, f"leader {leader} resigned")
        else:
            becoming.prospective(Cause.FETCH_TIMEOUT, why)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadline of the election timer, and those of repeated vote requests."""
        role = self.r.role
        match role:
            case Leader():
                pass
            case Follower():
                due.append(role.fetch_deadline)
            case Unattached() | Prospective() | Candidate() | Resigned():
                due.append(role.election_deadline)
        if isinstance(role, Prospective):
            silent_until = self.promises.silent_until
            if silent_until is not None:
                due.append(silent_until)
        if isinstance(role, _NOMINEES):
            repeat_ms = self.promises.part(REPEAT_SHARE)
            due += self.r.calls.repeats(CallKind.VOTE, repeat_ms, self.r.timers.now)
