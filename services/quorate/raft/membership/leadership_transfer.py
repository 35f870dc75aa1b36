"""TransferLeadership at the leader: moves leadership to a caught-up voter; not in Kafka.

The leader holds proposals until that voter has the complete log and has answered a
BeginQuorumEpoch. Then the leader resigns with that voter as preferred successor, so that it
campaigns immediately and no voter has a longer log. The answer shows that EndQuorumEpoch will reach
it: a voter that has just returned at another address may fetch from a leader that does not know the
address yet. If the voter is not ready within an election timeout, the leader continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.membership.rejection import Rejection
from quorate.raft.membership.shutdown_permit_state import holds_permit, permitted_and_running
from quorate.raft.messages import MembershipResponse, Reason, TransferLeadershipRequest
from quorate.raft.roles import Leader, PendingTransfer
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.membership.voter_changes import VoterChanges
    from quorate.records.ids import Millis, ReplicaKey, ReplyToken


class LeadershipTransfer:
    """TransferLeadership at a leader."""

    def __init__(self, voter_changes: VoterChanges) -> None:
        self.voter_changes = voter_changes
        self.leader_replication = voter_changes.leader_replication
        self.replica = voter_changes.replica

    def handle(self, token: ReplyToken, request: TransferLeadershipRequest) -> None:
        """Begin a transfer, unless that voter could not take over now."""
        replica = self.replica
        obstacle = self.voter_changes.check_leader(request.cluster_id)
        if obstacle is not None:
            self.voter_changes.reject(token, obstacle)
            return
        role = replica.role
        assert isinstance(role, Leader)
        voter = replica.voters.voter(request.voter)
        if voter is not None and voter.key.node_id == replica.node_id:
            replica.out.reply(token, MembershipResponse(ErrorCode.NONE, "", replica.leader_info))
            return
        obstacle = self._why_not(role, request)
        if obstacle is not None or voter is None:
            assert obstacle is not None
            self.voter_changes.reject(token, obstacle)
            return
        deadline = replica.timers.after(replica.config.election_timeout_ms)
        role.transfer = PendingTransfer(token, voter.key, deadline)
        role.begin_epoch_deadline = replica.timers.now
        replica.out.note(
            TraceEventKind.HAND_OVER_BEGUN, f"hands over to {voter.key}", to=voter.key.node_id
        )
        self.advance()

    def _why_not(self, role: Leader, request: TransferLeadershipRequest) -> Rejection | None:
        voter = self.replica.voters.voter(request.voter)
        if voter is None:
            ids = ", ".join(str(voter.key) for voter in self.replica.voters)
            text = f"{request.voter} is no voter: the voters are {ids} (node id : directory id)"
            return Rejection(ErrorCode.VOTER_NOT_FOUND, Reason.VOTER_NOT_FOUND, text)
        if role.transfer is not None:
            text = f"leadership is being handed over to {role.transfer.to}: try again later"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_HAND_OVER, text)
        if holds_permit(self.replica, role, voter.key):
            text = f"{voter.key} has leave to stop: let another voter lead"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_HAND_OVER, text)
        going = next(permitted_and_running(self.replica, role), None)
        if going is not None:
            # Permits are in this leader's memory: its successor would rely on that voter.
            text = f"{going} has leave and has not stopped yet: try again in a moment"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.NO_HAND_OVER, text)
        return self.voter_changes.check_caught_up(role, voter.key)

    def advance(self) -> None:
        """Resign once the successor has flushed everything and answers this leader."""
        role = self.replica.role
        if not isinstance(role, Leader) or role.transfer is None:
            return
        to = role.transfer.to
        if role.transfer.is_answered and self._has_whole_log(role, to):
            self.leader_replication.resign(
                RoleChangeCause.TRANSFER, f"leadership goes to {to}", first=to
            )

    def _has_whole_log(self, role: Leader, voter: ReplicaKey) -> bool:
        progress = role.progress.get(voter)
        return progress is not None and progress.fetch_offset == self.replica.log.end.offset

    def expire(self) -> None:
        """End a transfer whose successor did not catch up: append the held proposals."""
        replica = self.replica
        role = replica.role
        if not isinstance(role, Leader) or role.transfer is None:
            return
        hand_over = role.transfer
        if hand_over.deadline > replica.timers.now:
            return
        role.transfer = None
        obstacle = Rejection(
            ErrorCode.REQUEST_TIMED_OUT, Reason.NO_HAND_OVER, self._why_late(role, hand_over)
        )
        self.voter_changes.reject(hand_over.token, obstacle)
        for event in hand_over.held_proposals:
            self.leader_replication.propose(event)

    def _why_late(self, role: Leader, hand_over: PendingTransfer) -> str:
        replica = self.replica
        within = f"within {replica.config.election_timeout_ms} ms: this leader goes on; see that"
        if not self._has_whole_log(role, hand_over.to):
            return (
                f"{hand_over.to} did not fetch the whole log {within} the voter runs and is not "
                "far behind"
            )
        voter = replica.voters.voter(hand_over.to)
        peers = [] if voter is None else replica.voter_addresses.all_known(voter)
        ways = " and ".join(f"{peer.host}:{peer.port}" for peer in peers)
        return (
            f"{hand_over.to} fetches, but did not answer at {ways} {within} other voters reach it "
            "there, and try again"
        )

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadline of the transfer."""
        role = self.replica.role
        if isinstance(role, Leader) and role.transfer is not None:
            due.append(role.transfer.deadline)
