"""Handles Vote requests: grants or rejects votes and pre-votes, with the reason.

KIP-595 (votes), KIP-996 (pre-vote), rules `removed_voter_may_campaign`, `vote_by_voter_key`,
`pre_vote_moves_epoch`, `damaged_voter_heals` and `no_state_from_rejections`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from quorate.raft.election.vote_rejections import VoteRejections
from quorate.raft.messages import ElectionState, VoteRefusal, VoteRequest, VoteResponse
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Unattached, role_name
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.election.epoch_guard import EpochGuard
    from quorate.raft.election.failure_detector import LeaderFailureDetector
    from quorate.raft.election.pre_vote_leases import PreVoteLeases
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.replica import Replica
    from quorate.records.ids import NodeId

RejectionReason: TypeAlias = tuple[VoteRefusal, str]


class VoteHandler:
    """Answers of one replica to Vote requests."""

    def __init__(
        self,
        replica: Replica,
        role_transitions: RoleTransitions,
        epoch_guard: EpochGuard,
        leader_failure_detector: LeaderFailureDetector,
        pre_vote_leases: PreVoteLeases,
    ) -> None:
        self.replica = replica
        self.role_transitions = role_transitions
        self.epoch_guard = epoch_guard
        self.leader_failure_detector = leader_failure_detector
        self.pre_vote_leases = pre_vote_leases
        self.vote_rejections = VoteRejections(replica.timers)

    def handle_vote(self, request: VoteRequest) -> VoteResponse:
        """Answer a vote or pre-vote request (Kafka: handleVoteRequest).

        Rule `vote_by_voter_key`: this replica's voter set may lag, so it need not contain this
        replica or the nominee; the request must only be addressed to this replica.
        """
        replica = self.replica
        if request.cluster_id != replica.config.cluster_id:
            return self._refuse(VoteRefusal.INCONSISTENT_CLUSTER, ErrorCode.INCONSISTENT_CLUSTER_ID)
        if not _is_sound(request):
            return self._refuse(VoteRefusal.INVALID_REQUEST, ErrorCode.INVALID_REQUEST)
        if request.replica_epoch < replica.epoch:
            return self._refuse(VoteRefusal.STALE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)
        kind = "pre-vote" if request.pre_vote else "vote"
        nominee = request.replica.node_id
        if not self.epoch_guard.accepts(request.replica_epoch):
            text = f"{kind} of {nominee} in epoch {request.replica_epoch}: not believed"
            claimed_epoch = request.replica_epoch
            replica.out.note(
                TraceEventKind.NOT_BELIEVED, text, peer=nominee, claimed_epoch=claimed_epoch
            )
            return self._refuse(VoteRefusal.NOT_BELIEVED, ErrorCode.INVALID_REQUEST)
        if request.replica_epoch > replica.epoch:
            why = f"{kind} of {nominee} in a higher epoch"
            self.role_transitions.become_unattached(
                request.replica_epoch, RoleChangeCause.HIGHER_EPOCH, why
            )
        # Rule `no_state_from_rejections`: its epoch counts even if it was addressed to another
        # replica.
        if not self._is_meant_for_us(request):
            return self._refuse(VoteRefusal.INVALID_VOTER_KEY, ErrorCode.INVALID_VOTER_KEY)
        if request.pre_vote and isinstance(replica.role, Prospective):
            self._hear_rival(replica.role, nominee)
        refusal = self.rejection_reason(request)
        if refusal is not None:
            self._tell_refusal(request, *refusal)
            if request.pre_vote and refusal[0] is VoteRefusal.LOG_BEHIND:
                self.leader_failure_detector.on_losing_contender()
            return self._refuse(refusal[0])
        if not request.pre_vote:
            self._vote_for(request)
        else:
            self._promise(nominee)
        text = f"grants {kind} to {nominee} in epoch {replica.epoch}"
        replica.out.note(
            TraceEventKind.VOTE_GRANTED, text, nominee=nominee, is_pre_vote=request.pre_vote
        )
        leader = self.epoch_guard.leader_info_for(ErrorCode.NONE)
        return VoteResponse(ErrorCode.NONE, leader, vote_granted=True)

    def _refuse(self, refusal: VoteRefusal, error: ErrorCode = ErrorCode.NONE) -> VoteResponse:
        return VoteResponse(error, self.epoch_guard.leader_info_for(error), refusal=refusal)

    def _tell_refusal(self, request: VoteRequest, refusal: VoteRefusal, reason: str) -> None:
        nominee = request.replica.node_id
        self.vote_rejections.add(nominee, reason)
        self.replica.out.note(
            TraceEventKind.VOTE_REFUSED,
            f"refuses {'pre-vote' if request.pre_vote else 'vote'} to {nominee}: {reason}",
            nominee=nominee,
            is_pre_vote=request.pre_vote,
            reason=refusal.value,
        )

    # --- effects of a grant -----------------------------------------------------------------------

    def _hear_rival(self, role: Prospective, rival: NodeId) -> None:
        """Record another nominee: it has lost the leader, too, so an election is due."""
        replica = self.replica
        if role.contender_seen_ms is None:
            replica.request_manager.end_backoff(RequestKind.VOTE, rival)
        role.contender_seen_ms = replica.timers.now

    def _promise(self, nominee: NodeId) -> None:
        """Grant the pre-vote to another nominee, end the own round, and start one later."""
        self.pre_vote_leases.grant(nominee)
        if isinstance(self.replica.role, Prospective):
            self._begin_anew(self.replica.role)

    def _vote_for(self, request: VoteRequest) -> None:
        """Grant a candidate the vote: a nominee restarts its own round, and its timer."""
        replica = self.replica
        if replica.election.voted is not None:
            return
        if isinstance(replica.role, Prospective):
            replica.save_election(ElectionState(replica.epoch, None, request.replica))
            replica.role.election_deadline = replica.timers.after(
                replica.timers.draw_election_timeout()
            )
            self._begin_anew(replica.role)
        else:
            why = f"votes for {request.replica.node_id}"
            self.role_transitions.become_unattached(
                replica.epoch, RoleChangeCause.VOTE_GIVEN, why, voted=request.replica
            )
        self.pre_vote_leases.grant(request.replica.node_id)

    def _begin_anew(self, role: Prospective) -> None:
        self.replica.request_manager.abandon(RequestKind.VOTE)
        role.vote_tally = self.role_transitions.new_tally()
        role.lease_expiry.clear()

    # --- conditions -------------------------------------------------------------------------------

    def _is_meant_for_us(self, request: VoteRequest) -> bool:
        """True if the request names this replica, without its directory at kraft.version 0.

        An upgrade only at the end of this log does not count: it may have been lost with its
        leader, and a leader that could truncate it does not know directory ids.
        """
        replica, voter = self.replica, request.voter
        if voter.node_id != replica.node_id:
            return False
        if voter.directory_id is None:
            return replica.log.committed_kraft_version(replica.high_watermark) == 0
        return voter.directory_id == replica.key.directory_id

    def rejection_reason(self, request: VoteRequest) -> RejectionReason | None:
        """The reason to reject the vote; None if it is granted. The epochs are equal here.

        A granted vote is granted again, regardless of the log: the candidate claims only what it
        has flushed, so that its log is not shorter than claimed even after a restart.
        """
        replica = self.replica
        if replica.abstains:
            why = "this replica abstains: it came up empty, and may have forgotten a vote"
            return VoteRefusal.ABSTAINS, why
        if replica.is_refused:
            return VoteRefusal.ABSTAINS, "another process is this voter, as the leader says"
        if not request.pre_vote and self._has_voted_for(request):
            return self._reason_to_refuse_vote(request)
        if not self.is_up_to_date(request):
            why = f"its log ends at {request.last}, this one needs {replica.min_candidate_log_end}"
            return VoteRefusal.LOG_BEHIND, why
        if request.pre_vote:
            return self._reason_to_refuse_pre_vote(request)
        return self._reason_to_refuse_vote(request)

    def is_up_to_date(self, request: VoteRequest) -> bool:
        """Raft's election restriction, against the log that this replica has or had.

        See rule `damaged_voter_heals`.
        """
        return request.last >= self.replica.min_candidate_log_end

    def _reason_to_refuse_pre_vote(self, request: VoteRequest) -> RejectionReason | None:
        """Reject, per KIP-996, if this replica leads or is in contact with the leader.

        If two nominees ask each other, the one with the longer log takes precedence, and with equal
        logs the one with the higher id: if both had the other's pre-vote, they would split the
        votes. For the same reason no replica grants its pre-vote to two nominees at the same time.
        """
        replica = self.replica
        rival = request.replica.node_id
        match replica.role:
            case Leader():
                return VoteRefusal.HAS_LEADER, "this replica leads"
            case Follower(leader_id=leader_id) if self.leader_failure_detector.has_live_leader():
                return VoteRefusal.HAS_LEADER, f"it hears leader {leader_id}"
            case Prospective() if self._goes_first(request):
                return VoteRefusal.RIVAL_GOES_FIRST, "it asks for pre-votes, too, and goes first"
        is_rival = isinstance(replica.role, Prospective)
        return self.pre_vote_leases.reason_to_refuse(rival, is_rival=is_rival)

    def _goes_first(self, request: VoteRequest) -> bool:
        """True if this replica precedes that nominee; False if it waits for its disk."""
        log = self.replica.log
        is_ahead = (log.end, self.replica.node_id) > (request.last, request.replica.node_id)
        return is_ahead and log.flushed >= log.end.offset

    def _reason_to_refuse_vote(self, request: VoteRequest) -> RejectionReason | None:
        """Grant one vote per epoch, and none in an epoch whose leader is known."""
        replica = self.replica
        if request.replica.node_id == replica.node_id:
            return VoteRefusal.OWN_NODE_ID, "it carries this replica's own node id"
        if not isinstance(replica.role, Unattached | Prospective):
            is_taken = isinstance(replica.role, Candidate)
            refusal = VoteRefusal.ALREADY_VOTED if is_taken else VoteRefusal.HAS_LEADER
            return refusal, f"this replica is {role_name(replica.role)}"
        voted = replica.election.voted
        if voted is not None:
            is_same = self._has_voted_for(request)
            why = f"voted for {voted.node_id} in epoch {replica.epoch}"
            return None if is_same else (VoteRefusal.ALREADY_VOTED, why)
        if replica.election.leader_id is not None:
            why = f"leader {replica.election.leader_id} of epoch {replica.epoch} is known"
            return VoteRefusal.HAS_LEADER, why
        return None

    def _has_voted_for(self, request: VoteRequest) -> bool:
        voted, nominee = self.replica.election.voted, request.replica
        if voted is None or voted.node_id != nominee.node_id:
            return False
        return voted.directory_id in (None, nominee.directory_id)


def _is_sound(request: VoteRequest) -> bool:
    """True if a nominee's request is well-formed (Kafka: step 1 of handleVoteRequest)."""
    if request.replica.node_id < 0 or request.last.offset < 0 or request.last.epoch < 0:
        return False
    if request.pre_vote:
        return request.last.epoch <= request.replica_epoch
    return request.last.epoch < request.replica_epoch
