"""Votes: asked for, counted, granted and refused; and the timers that begin an election.

KIP-595 (votes), KIP-996 (pre-vote), rules 1, 2, 9, 11 and 16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.raft.addresses import NOT_THE_ONE
from quorate.raft.api import CallFailure
from quorate.raft.calls import Call, CallKind
from quorate.raft.messages import VoteRefusal, VoteRequest, VoteResponse
from quorate.raft.notes import Cause, NoteKind
from quorate.raft.promises import ASK_SHARE, PROMISE_SHARE, TURN_SHARE, Promises
from quorate.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Refusal,
    Resigned,
    Unattached,
    role_name,
)
from quorate.raft.suspecting import SUSPICION_RETRY_MS, Suspecting
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId

if TYPE_CHECKING:
    from quorate.raft.replica import Replica

# Part of the election timeout after which a lost round is repeated, at the soonest.
RETRY_SHARE: Final = 6
RETRY_DOUBLINGS_MAX: Final = 8
# Part of the election timeout after which a voter that has not answered is asked once more: one
# request that is lost must not cost the round, and the first may still be answered.
REPEAT_SHARE: Final = 4
REFUSALS_TOLD_MS: Final = 300_000
REFUSALS_MAX: Final = 32
_NOMINEES: Final = (Prospective, Candidate)
WhyNot: TypeAlias = tuple[VoteRefusal, str]


class Elections:
    """Everything about votes, for one replica."""

    def __init__(self, replica: Replica) -> None:
        self.r = replica
        self.suspecting = Suspecting(replica)
        self.promises = Promises(replica)

    # --- granting -------------------------------------------------------------------------------

    def handle_vote(self, request: VoteRequest) -> VoteResponse:
        """Answer a (pre-)vote (seed: handleVoteRequest).

        Rule 2: whether this replica's own set holds itself or the nominee does not matter, since
        that set may lag; the request must only be meant for this very replica.
        """
        r = self.r
        if request.cluster_id != r.config.cluster_id:
            return self._refuse(VoteRefusal.INCONSISTENT_CLUSTER, ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not _is_sound(request):
            return self._refuse(VoteRefusal.INVALID_REQUEST, ErrorCode.INVALID_REQUEST)
        if request.replica_epoch < r.epoch:
            return self._refuse(VoteRefusal.STALE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)
        kind = "pre-vote" if request.pre_vote else "vote"
        nominee = request.replica.node_id
        if not r.believing.admit(request.replica_epoch):
            text = f"{kind} of {nominee} in epoch {request.replica_epoch}: not believed"
            r.note(NoteKind.NOT_BELIEVED, text, peer=nominee, claimed_epoch=request.replica_epoch)
            return self._refuse(VoteRefusal.NOT_BELIEVED, ErrorCode.INVALID_REQUEST)
        if request.replica_epoch > r.epoch:
            why = f"{kind} of {nominee} in a higher epoch"
            r.become_unattached(request.replica_epoch, Cause.HIGHER_EPOCH, why)
        # Rule 27: its epoch is known now, even where it was meant for another replica.
        if not self._is_meant_for_us(request):
            return self._refuse(VoteRefusal.INVALID_VOTER_KEY, ErrorCode.INVALID_VOTER_KEY)
        if request.pre_vote and isinstance(r.role, Prospective):
            self._hear_rival(r.role, nominee)
        refusal = self.reason_to_refuse(request)
        if refusal is not None:
            self._count_refusal(request, *refusal)
            return self._refuse(refusal[0])
        if not request.pre_vote:
            self._vote_for(request)
        else:
            self._promise(nominee)
        text = f"grants {kind} to {nominee} in epoch {r.epoch}"
        r.note(NoteKind.VOTE_GRANTED, text, nominee=nominee, is_pre_vote=request.pre_vote)
        return VoteResponse(
            ErrorCode.NONE, r.believing.told_with(ErrorCode.NONE), vote_granted=True
        )

    def _hear_rival(self, role: Prospective, rival: NodeId) -> None:
        """A rival misses the leader, too: an election is due, and it would answer otherwise now."""
        r = self.r
        if role.rival_ms is None:
            r.calls.end_backoff(CallKind.VOTE, rival)
        role.rival_ms = r.now

    def _promise(self, nominee: NodeId) -> None:
        """Give a rival the pre-vote, give up the own round, and begin another later."""
        self.promises.give(nominee)
        if isinstance(self.r.role, Prospective):
            self._begin_anew(self.r.role)

    def _begin_anew(self, role: Prospective) -> None:
        self.r.calls.abandon(CallKind.VOTE)
        role.tally = self.r.new_tally()
        role.promised_until.clear()

    def _is_meant_for_us(self, request: VoteRequest) -> bool:
        """Whether the request names this replica, without its directory at kraft.version 0.

        An upgrade at the end of this log alone does not count: it may have been lost with its
        leader, and a leader that could cut it off never heard of directories.
        """
        r, voter = self.r, request.voter
        if voter.node_id != r.node_id:
            return False
        if voter.directory_id is None:
            return r.log.committed_kraft_version(r.high_watermark) == 0
        return voter.directory_id == r.key.directory_id

    def _refuse(self, refusal: VoteRefusal, error: ErrorCode = ErrorCode.NONE) -> VoteResponse:
        return VoteResponse(error, self.r.believing.told_with(error), refusal=refusal)

    def reason_to_refuse(self, request: VoteRequest) -> WhyNot | None:
        """Why the vote is not granted; None when it is. The epochs are equal here.

        A vote that was given is given again, whatever the log says by now: its candidate claims
        only what is on its disk, so that no restart makes its log shorter than it claimed.
        """
        r = self.r
        if r.abstains:
            why = "this replica abstains: its disk bears no mark of the first bootstrap"
            return VoteRefusal.ABSTAINS, why
        if not request.pre_vote and self._has_voted_for(request):
            return self._reason_to_refuse_vote(request)
        if not self.is_up_to_date(request):
            why = f"its log ends at {request.last}, this one needs {r.vote_bar}"
            return VoteRefusal.LOG_BEHIND, why
        if request.pre_vote:
            return self._reason_to_refuse_pre_vote(request)
        return self._reason_to_refuse_vote(request)

    def is_up_to_date(self, request: VoteRequest) -> bool:
        """Raft's election restriction, against what this replica has or once had (rule 16)."""
        return request.last >= self.r.vote_bar

    def _reason_to_refuse_pre_vote(self, request: VoteRequest) -> WhyNot | None:
        """KIP-996: refused by who leads, or hears the leader.

        Of two nominees that ask each other the one with the longer log goes first, with equal logs
        the one with the higher id: two that had each other's pre-vote would split the votes. For
        the same reason nobody gives its pre-vote to two in one breath.
        """
        r = self.r
        rival = request.replica.node_id
        match r.role:
            case Leader():
                return VoteRefusal.HAS_LEADER, "this replica leads"
            case Follower(leader_id=leader_id) if self.hears_leader():
                return VoteRefusal.HAS_LEADER, f"it hears leader {leader_id}"
            case Prospective() if self._goes_first(request):
                return VoteRefusal.RIVAL_GOES_FIRST, "it asks for pre-votes, too, and goes first"
        is_rival = isinstance(r.role, Prospective)
        return self.promises.reason_to_refuse(rival, is_rival=is_rival)

    def _goes_first(self, request: VoteRequest) -> bool:
        """Whether this nominee is ahead of that one; one that waits for its disk lets it pass."""
        log = self.r.log
        is_ahead = (log.end, self.r.node_id) > (request.last, request.replica.node_id)
        return is_ahead and log.flushed >= log.end.offset

    def hears_leader(self) -> bool:
        """Whether this follower has a living leader, as far as it can tell (rule 10)."""
        role = self.r.role
        if not isinstance(role, Follower) or not role.has_fetched or role.has_ended:
            return False
        suspicion = self.r.suspicion
        return suspicion is None or not suspicion.is_refused

    def _reason_to_refuse_vote(self, request: VoteRequest) -> WhyNot | None:
        """One vote an epoch, and none in an epoch whose leader is known."""
        r = self.r
        if request.replica.node_id == r.node_id:
            return VoteRefusal.OWN_NODE_ID, "it carries this replica's own node id"
        if not isinstance(r.role, Unattached | Prospective):
            is_taken = isinstance(r.role, Candidate)
            refusal = VoteRefusal.ALREADY_VOTED if is_taken else VoteRefusal.HAS_LEADER
            return refusal, f"this replica is {role_name(r.role)}"
        voted = r.election.voted
        if voted is not None:
            is_same = self._has_voted_for(request)
            why = f"voted for {voted.node_id} in epoch {r.epoch}"
            return None if is_same else (VoteRefusal.ALREADY_VOTED, why)
        if r.election.leader_id is not None:
            why = f"leader {r.election.leader_id} of epoch {r.epoch} is known"
            return VoteRefusal.HAS_LEADER, why
        return None

    def _has_voted_for(self, request: VoteRequest) -> bool:
        voted, nominee = self.r.election.voted, request.replica
        if voted is None or voted.node_id != nominee.node_id:
            return False
        return voted.directory_id in (None, nominee.directory_id)

    def _vote_for(self, request: VoteRequest) -> None:
        """The candidate gets its chance: a nominee's own round, too, begins anew with its timer."""
        r = self.r
        if r.election.voted is not None:
            return
        if isinstance(r.role, Prospective):
            r.save_election(type(r.election)(r.epoch, None, request.replica))
            r.role.election_deadline = r.after(r.draw_election_timeout())
            self._begin_anew(r.role)
        else:
            why = f"votes for {request.replica.node_id}"
            r.become_unattached(r.epoch, Cause.VOTE_GIVEN, why, voted=request.replica)
        self.promises.give(request.replica.node_id)

    def _count_refusal(self, request: VoteRequest, refusal: VoteRefusal, reason: str) -> None:
        r = self.r
        nominee = request.replica.node_id
        before = r.refusals.get(nominee)
        count = before.count if before is not None and _is_recent(before, r.now) else 0
        r.refusals.pop(nominee, None)
        if len(r.refusals) >= REFUSALS_MAX:
            # Anybody can invent nominees; the one that was refused last longest ago goes first.
            del r.refusals[next(iter(r.refusals))]
        r.refusals[nominee] = Refusal(count + 1, reason, r.now)
        text = f"refuses {'pre-vote' if request.pre_vote else 'vote'} to {nominee}: {reason}"
        r.note(
            NoteKind.VOTE_REFUSED,
            text,
            nominee=nominee,
            is_pre_vote=request.pre_vote,
            reason=refusal.value,
        )

    # --- asking -----------------------------------------------------------------------------------

    def ask(self) -> None:
        """Ask every voter that has not answered and may be asked now.

        About pre-votes all are asked again while the round lasts: what was refused may be free by
        now, and what was given is a promise that ends by itself. Nobody is asked before the whole
        log is on the disk: a crash could make it shorter than what the votes were given for.
        """
        r = self.r
        role = r.role
        if not isinstance(role, _NOMINEES) or r.log.flushed < r.log.end.offset:
            return
        if isinstance(role, Prospective):
            if self.promises.silent_until is not None:
                return
            self._let_lapse(role)
        asked_by = r.after(-self.promises.part(REPEAT_SHARE))
        for voter in r.voters:
            node_id = voter.key.node_id
            is_final = isinstance(role, Candidate) and role.tally.votes.get(node_id) is not None
            if is_final or node_id == r.node_id:
                continue
            peer = r.peer(voter)
            if peer is None or not r.calls.may_repeat(CallKind.VOTE, node_id, r.now, asked_by):
                continue
            request = VoteRequest(
                r.config.cluster_id,
                voter.key,
                r.key,
                r.epoch,
                r.log.end,
                pre_vote=isinstance(role, Prospective),
                replica_endpoints=r.config.endpoints,
            )
            r.send(CallKind.VOTE, peer, request)

    def _let_lapse(self, role: Prospective) -> None:
        """A promise that was not renewed in time counts no more: a rival may have it by now."""
        r = self.r
        for node_id, until in list(role.promised_until.items()):
            if until <= r.now:
                del role.promised_until[node_id]
                role.tally.votes[node_id] = None

    def handle_response(self, call: Call, response: VoteResponse | CallFailure) -> None:
        """Count a vote, or learn that the epoch has moved on."""
        r = self.r
        if call.epoch != r.epoch or not isinstance(r.role, Prospective | Candidate):
            return
        if isinstance(response, CallFailure):
            r.back_off(CallKind.VOTE, call.to)
            return
        r.calls.succeeded(CallKind.VOTE, call.to)
        role = r.role
        # That a voter still names the leader which this nominee has lost is no news, and must not
        # drown its vote.
        if response.leader.epoch > r.epoch or r.election.leader_id is None:
            r.learn(response.leader, f"answer of {call.to}")
        if r.role is not role or call.epoch != r.epoch:
            return
        if response.error is not ErrorCode.NONE:
            text = f"{call.to} answers Vote with {response.error.name}"
            r.note(NoteKind.REFUSED_BY_PEER, text, peer=call.to, error=response.error.name)
            if response.error in NOT_THE_ONE and self._is_elsewhere(call):
                r.back_off(CallKind.VOTE, call.to)
            else:
                r.calls.back_off(CallKind.VOTE, call.to, r.after(r.config.request_timeout_ms))
            return
        if call.to in role.tally.votes:
            role.tally.votes[call.to] = response.vote_granted
        if isinstance(role, Prospective):
            role.promised_until.pop(call.to, None)
            if response.vote_granted:
                role.promised_until[call.to] = r.after(self.promises.part(PROMISE_SHARE))
            r.calls.back_off(CallKind.VOTE, call.to, r.after(self.promises.part(ASK_SHARE)))
            self._let_lapse(role)
        self._count(role)

    def _is_elsewhere(self, call: Call) -> bool:
        """Whether the voter that was meant may be found another way."""
        voter = self.r.voters.by_id(call.to)
        peer = None if voter is None else self.r.peer(voter)
        return peer is not None and peer != call.at

    def _count(self, role: Prospective | Candidate) -> None:
        r = self.r
        match role:
            case Prospective(tally=tally) if tally.is_won:
                why = f"{tally.granted} of {len(r.voters)} pre-votes"
                r.become_candidate(Cause.PRE_VOTES_GRANTED, why)
            case Prospective(tally=tally) if tally.is_lost and not self._has_rivals(role):
                self._lose_pre_vote(role, Cause.PRE_VOTE_REJECTED, "pre-vote lost")
            case Candidate(tally=tally) if tally.is_won:
                r.become_leader()
            case Candidate(tally=tally, has_lost=False) if tally.is_lost:
                role.has_lost = True
                r.note(NoteKind.ELECTION_LOST, "election lost: waits for the rest of its timeout")
                if r.suspicion is not None:
                    r.suspicion.probe_ms = r.after(r.draw(SUSPICION_RETRY_MS))

    def _has_rivals(self, role: Prospective) -> bool:
        """Whether others just missed the leader, too: their promises end soon, so the round lasts.

        Going back to the leader would only have all of them begin anew, at one moment again.
        """
        since = role.rival_ms
        return since is not None and self.r.now < since + self.promises.part(TURN_SHARE)

    def _lose_pre_vote(self, role: Prospective, cause: Cause, why: str) -> None:
        """Back to the leader if one is known, otherwise wait for another turn (KIP-996).

        Another turn comes soon, since those who refused may miss the leader a moment later, or have
        been rivals; and later with every round that is lost without a word of the leader.
        """
        r = self.r
        r.lost_rounds += 1
        retry = self._draw_retry()
        leader_id = r.election.leader_id
        suspicion = r.suspicion
        if suspicion is not None:
            suspicion.act_ms = None
            suspicion.probe_ms = r.after(r.draw(SUSPICION_RETRY_MS))
            if role.resume_deadline is not None:
                retry = role.resume_deadline
        if leader_id is not None and leader_id != r.node_id and r.leader_peer() is not None:
            r.become_follower(r.epoch, leader_id, (), cause, why, resume_deadline=retry)
        else:
            r.become_unattached(r.epoch, cause, why, deadline=retry)

    def _draw_retry(self) -> Millis:
        r = self.r
        share = r.config.election_timeout_ms // RETRY_SHARE
        delay = (share + r.draw(share)) << min(r.lost_rounds - 1, RETRY_DOUBLINGS_MAX)
        return r.after(min(delay, r.draw_election_timeout()))

    # --- timers -----------------------------------------------------------------------------------

    def expire(self) -> None:
        """Begin, give up or repeat an election whose time has come."""
        r = self.r
        match r.role:
            case Leader():
                pass
            case Follower(fetch_deadline=deadline) as role:
                if deadline <= r.now:
                    self._leader_is_lost(role)
            case Unattached(election_deadline=deadline) as role if deadline <= r.now:
                if not r.may_campaign or r.waits_until_ready():
                    role.election_deadline = r.after(r.draw_election_timeout())
                else:
                    r.become_prospective(Cause.ELECTION_TIMEOUT, "no leader was found")
            case Prospective(election_deadline=deadline) as role if deadline <= r.now:
                self._lose_pre_vote(role, Cause.PRE_VOTE_TIMED_OUT, "pre-vote timed out")
            case Candidate(election_deadline=deadline) if deadline <= r.now:
                r.become_prospective(Cause.ELECTION_TIMEOUT, "election timed out")
            case Resigned(election_deadline=deadline) if deadline <= r.now:
                r.become_unattached(Epoch(r.epoch + 1), Cause.NO_SUCCESSOR, "nobody took over")
        if r.suspicion is not None:
            self.suspecting.act()

    def _leader_is_lost(self, role: Follower) -> None:
        r = self.r
        leader = role.leader_id
        if r.lost_rounds:
            why = f"still no fetch from leader {leader}"
        else:
            why = f"no fetch from leader {leader} for {r.config.fetch_timeout_ms} ms"
        if not r.may_campaign:
            r.become_unattached(r.epoch, Cause.FETCH_TIMEOUT, why)
        elif r.waits_until_ready():
            # It leaves the election to others, so it must not claim to hear the leader.
            deadline = r.after(r.draw_election_timeout())
            r.take_role(replace(role, fetch_deadline=deadline, has_fetched=False))
        elif role.has_ended:
            is_voter = r.voters.by_id(leader) is not None
            cause = Cause.END_QUORUM_EPOCH if is_voter else Cause.LEADER_REMOVED
            r.become_prospective(cause, f"leader {leader} resigned")
        else:
            r.become_prospective(Cause.FETCH_TIMEOUT, why)

    def add_deadlines(self, due: list[Millis]) -> None:
        """When an election timer or a suspicion is due."""
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
            due += self.r.calls.repeats(CallKind.VOTE, repeat_ms, self.r.now)
        if self.r.suspicion is not None:
            self.suspecting.add_deadlines(due)


def _is_sound(request: VoteRequest) -> bool:
    """The shape that a nominee's request must have (seed: step 1 of handleVoteRequest)."""
    if request.replica.node_id < 0 or request.last.offset < 0 or request.last.epoch < 0:
        return False
    if request.pre_vote:
        return request.last.epoch <= request.replica_epoch
    return request.last.epoch < request.replica_epoch


def refusals(replica: Replica) -> list[str]:
    """The refused votes of the last minutes, one line a nominee, for `describe` and the log."""
    return [
        f"refused {refusal.count} vote(s) to {NodeId(node)}: {refusal.reason}"
        for node, refusal in replica.refusals.items()
        if _is_recent(refusal, replica.now)
    ]


def _is_recent(refusal: Refusal, now: Millis) -> bool:
    """Whether it still tells of the quorum as it is; an election of last week does not."""
    return now - refusal.last_ms <= REFUSALS_TOLD_MS
