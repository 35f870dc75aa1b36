"""TakeLeave at the leader: permits one voter at a time to stop; not in Kafka.

The leader issues a permit if a majority of the voters remains without the requesting voter and
without all voters that have a permit and have not returned. Permits are in the leader's memory and
are lost with it. So a new leader issues none, and does not transfer leadership, before voters with
a permit of its predecessor have stopped fetching (docs/decisions/0005-stopping-in-turn.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.membership.rejection import Rejection
from quorate.raft.membership.shutdown_permit_state import holds_permit, is_silent
from quorate.raft.messages import MembershipResponse, Reason, TakeLeaveRequest
from quorate.raft.roles import Leader, ShutdownPermit
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.membership.voter_changes import VoterChanges
    from quorate.records.ids import ReplicaKey, ReplyToken
    from quorate.records.voters import Voter

# A voter with a permit that neither stops nor becomes silent counts again after this time.
PERMIT_MS: Final = 30_000


class ShutdownPermits:
    """TakeLeave at a leader."""

    def __init__(self, voter_changes: VoterChanges) -> None:
        self.voter_changes = voter_changes
        self.replica = voter_changes.replica

    def handle(self, token: ReplyToken, request: TakeLeaveRequest) -> None:
        """Issue a permit, or reject with the reason; a repeated request gets a new answer.

        A rejection does not end a permit: the answer that granted it may still be in flight to
        another caller for the same voter, and that voter stops when it arrives.
        """
        replica = self.replica
        obstacle = self.voter_changes.check_leader(request.cluster_id)
        if obstacle is not None:
            self.voter_changes.reject(token, obstacle)
            return
        role = replica.role
        assert isinstance(role, Leader)
        role.shutdown_permits = {
            key: leave
            for key, leave in role.shutdown_permits.items()
            if leave.until_ms > replica.timers.now
        }
        voter = replica.voters.voter(request.voter)
        obstacle = self._why_never(request, voter)
        if obstacle is None and voter is not None:
            obstacle = self.check(role, voter.key)
        if obstacle is not None or voter is None:
            assert obstacle is not None
            self.voter_changes.reject(token, obstacle)
            return
        role.shutdown_permits[voter.key] = ShutdownPermit(
            replica.timers.now, replica.timers.after(PERMIT_MS)
        )
        text = f"voter {voter.key} has leave to stop: {self._named(role)} stay"
        replica.out.note(TraceEventKind.LEAVE_GRANTED, text, replica_id=voter.key.node_id)
        replica.out.reply(token, MembershipResponse(ErrorCode.NONE, "", replica.leader_info))

    def _why_never(self, request: TakeLeaveRequest, voter: Voter | None) -> Rejection | None:
        """The reason why this voter can never get a permit; None if it can."""
        voters = self.replica.voters
        if voter is None:
            ids = ", ".join(str(voter.key) for voter in voters)
            text = f"{request.voter} is no voter: the voters are {ids} (node id : directory id)"
            return Rejection(ErrorCode.VOTER_NOT_FOUND, Reason.VOTER_NOT_FOUND, text)
        if len(voters) - 1 < voters.majority:
            text = (
                f"of {len(voters)} voters none can be spared, whoever waits for whom: with three "
                "or more the others would go on"
            )
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.TOO_FEW_VOTERS, text)
        return None

    def check(self, role: Leader, key: ReplicaKey) -> Rejection | None:
        """The reason why this voter has to wait; None if it may stop now."""
        replica = self.replica
        obstacle = self.voter_changes.check_epoch_committed(
            role
        ) or self.voter_changes.check_no_pending_change(role)
        if obstacle is not None:
            return obstacle
        # A voter with a permit of the previous leader may still fetch from this one. It gets the
        # longest time without a leader to stop, plus the time after which it counts as silent.
        age, known_ms = replica.timers.now - role.elected_ms, replica.config.check_quorum_timeout_ms
        if age < known_ms:
            text = (
                f"the leader of epoch {replica.epoch} was elected {age} ms ago and has yet to "
                "learn who "
                f"is away: try again in {known_ms - age} ms"
            )
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.HIGH_WATERMARK_UNKNOWN, text)
        stay = [
            voter.key for voter in replica.voters if voter.key != key and self._is_here(role, voter)
        ]
        if len(stay) >= replica.voters.majority:
            return None
        away = [voter.key for voter in replica.voters if voter.key != key and voter.key not in stay]
        who = ", ".join(self._state(role, other) for other in away)
        text = (
            f"{key} cannot be spared now: {who}; without it {len(stay)} of {len(replica.voters)} "
            "voters "
            f"would stay, and a majority is {replica.voters.majority}: wait until they are back"
        )
        metadata = (
            ("away", ",".join(str(other.node_id) for other in away)),
            ("majority", str(replica.voters.majority)),
            ("stay", str(len(stay))),
        )
        return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTERS_AWAY, text, metadata)

    def _is_here(self, role: Leader, voter: Voter) -> bool:
        """True if a voter is available to commit the next records."""
        replica = self.replica
        if holds_permit(replica, role, voter.key):
            return False
        if self._is_own(voter.key):
            return not replica.leader_eligibility.is_disk_stalled
        progress = role.progress.get(voter.key)
        last_fetch_ms = None if progress is None else progress.last_fetch_ms
        return not is_silent(replica, last_fetch_ms) and (
            self.voter_changes.check_caught_up(role, voter.key) is None
        )

    def _is_own(self, key: ReplicaKey) -> bool:
        """True for the leader's own key; at kraft.version 0 the set has no directory ids."""
        return key.node_id == self.replica.node_id and key.directory_id in (
            None,
            self.replica.key.directory_id,
        )

    def _state(self, role: Leader, key: ReplicaKey) -> str:
        """The reason why a voter does not count, as text."""
        if holds_permit(self.replica, role, key):
            return f"voter {key.node_id} has leave and is not back"
        if self._is_own(key):
            return f"the disk of voter {key.node_id} hangs"
        progress = role.progress.get(key)
        if progress is None or progress.last_fetch_ms is None:
            return f"voter {key.node_id} has not fetched from this leader"
        ago_ms = self.replica.timers.now - progress.last_fetch_ms
        if is_silent(self.replica, progress.last_fetch_ms):
            return f"voter {key.node_id} was last heard {ago_ms} ms ago"
        return f"voter {key.node_id} has not caught up"

    def _named(self, role: Leader) -> str:
        here = [
            int(voter.key.node_id) for voter in self.replica.voters if self._is_here(role, voter)
        ]
        return f"the voters {here}"
