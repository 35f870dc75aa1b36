"""Sends and handles BeginQuorumEpoch and EndQuorumEpoch.

The leader announces itself to the voters that do not fetch. A resigned leader notifies all voters
of the order in which they should campaign (KIP-595; Kafka: LeaderState, ResignedState). A leader
also announces itself to voters that may not be at their known address, and to the target of a
leadership transfer: a response shows that EndQuorumEpoch will reach that voter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestFailure
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    LeaderInfo,
)
from quorate.raft.request_manager import InFlightRequest, RequestKind
from quorate.raft.roles import Follower, Leader, Prospective, Resigned
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis, ReplicaKey

if TYPE_CHECKING:
    from quorate.raft.election.epoch_guard import EpochGuard
    from quorate.raft.election.leader_updates import LeaderUpdates
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader import LeaderReplication
    from quorate.records.ids import Epoch, NodeId
    from quorate.records.voters import Voter

BEGIN_RETRIES_PER_FETCH_TIMEOUT: Final = 8
UNORDERED_JITTER_MS: Final = 50
# Fraction of the election timeout after which a voter that has not answered is notified again: it
# may have another address, and the first request may still be answered.
REPEAT_SHARE: Final = 4


class EpochAnnouncements:
    """Begin and end of epochs, for one replica."""

    def __init__(
        self,
        replica: Replica,
        leader_updates: LeaderUpdates,
        epoch_guard: EpochGuard,
        leader_replication: LeaderReplication,
    ) -> None:
        self.replica = replica
        self.leader_updates = leader_updates
        self.epoch_guard = epoch_guard
        self.leader_replication = leader_replication
        # The epoch whose leader was the last to report its resignation.
        self._ended: Epoch | None = None

    # --- the leader's side ------------------------------------------------------------------------

    def drive(self) -> None:
        """Send the announcements that are due."""
        match self.replica.role:
            case Leader() as role:
                self._announce(role)
            case Resigned() as role:
                self._announce_end(role)

    def _announce(self, role: Leader) -> None:
        """Announce to voters that do not fetch: when elected, then every half fetch timeout."""
        replica = self.replica
        if role.begin_epoch_deadline > replica.timers.now:
            return
        hand_over = role.transfer
        successor = None if hand_over is None or hand_over.is_answered else hand_over.to
        interval_ms = replica.config.fetch_timeout_ms // 2 if successor is None else self._retry_ms
        role.begin_epoch_deadline = replica.timers.after(interval_ms)
        self.leader_replication.progress_tracker.forget_observers(role)
        role.unconfirmed.intersection_update(voter.key for voter in replica.voters)
        for voter in replica.voters:
            is_reached = self._fetches(role, voter) and voter.key not in role.unconfirmed
            if voter.key.node_id != replica.node_id and (not is_reached or voter.key == successor):
                self._begin(voter)

    @property
    def _retry_ms(self) -> int:
        return self.replica.config.fetch_timeout_ms // BEGIN_RETRIES_PER_FETCH_TIMEOUT

    def _may_tell(self, kind: RequestKind, to: NodeId) -> bool:
        replica = self.replica
        told_by = replica.timers.after(-(replica.config.election_timeout_ms // REPEAT_SHARE))
        return replica.request_manager.may_resend(kind, to, replica.timers.now, told_by)

    def _fetches(self, role: Leader, voter: Voter) -> bool:
        progress = role.progress.get(voter.key)
        if progress is None or progress.last_fetch_ms is None:
            return False
        return (
            self.replica.timers.now - progress.last_fetch_ms
            < self.replica.config.fetch_timeout_ms // 2
        )

    def _begin(self, voter: Voter) -> None:
        replica = self.replica
        peer = replica.peer(voter)
        if peer is None or not self._may_tell(RequestKind.BEGIN_QUORUM_EPOCH, peer.node_id):
            return
        request = BeginQuorumEpochRequest(
            replica.config.cluster_id,
            voter.key,
            replica.node_id,
            replica.epoch,
            replica.config.endpoints,
        )
        replica.send(RequestKind.BEGIN_QUORUM_EPOCH, peer, request)

    def handle_begin_response(
        self,
        in_flight_request: InFlightRequest,
        response: BeginQuorumEpochResponse | RequestFailure,
    ) -> None:
        """Handle an acknowledgement, which confirms the address; a higher epoch ends leadership.

        A voter that could not be reached is notified again soon: it may just be starting.
        """
        replica = self.replica
        role = replica.role
        is_told = not isinstance(response, RequestFailure) and response.error is ErrorCode.NONE
        if isinstance(role, Leader) and in_flight_request.epoch == replica.epoch:
            self._is_told(role, in_flight_request.to, is_told=is_told)
        if isinstance(response, RequestFailure):
            if isinstance(role, Leader) and in_flight_request.epoch == replica.epoch:
                retry = replica.timers.after(self._retry_ms)
                role.begin_epoch_deadline = min(role.begin_epoch_deadline, retry)
            return
        self._hear_answer(in_flight_request, response)

    def _hear_answer(
        self,
        in_flight_request: InFlightRequest,
        response: BeginQuorumEpochResponse | EndQuorumEpochResponse,
    ) -> None:
        """Report an error response, and follow the leader that a response names.

        A later epoch is reported by the role change.
        """
        replica = self.replica
        topic = f"{in_flight_request.to} answers {in_flight_request.kind.value}"
        if response.error is ErrorCode.NONE:
            replica.out.forget(topic)
        elif response.leader.epoch <= replica.epoch:
            error = response.error.name
            text = f"{topic} with {error}"
            replica.out.tell(
                TraceEventKind.REFUSED_BY_PEER, topic, text, peer=in_flight_request.to, error=error
            )
        self.leader_updates.apply(response.leader, f"answer of {in_flight_request.to}")

    def _is_told(self, role: Leader, node_id: NodeId, *, is_told: bool) -> None:
        voter = self.replica.voters.by_id(node_id)
        if voter is None:
            return
        if not is_told:
            role.unconfirmed.add(voter.key)
            return
        role.unconfirmed.discard(voter.key)
        if role.transfer is not None and role.transfer.to == voter.key:
            role.transfer.is_answered = True

    def _announce_end(self, role: Resigned) -> None:
        replica = self.replica
        if role.turn_until is None:
            role.turn_until = self._turn_end()
        elif role.turn_until <= replica.timers.now:
            self._pass_turn(role)
        for node_id in list(role.unacknowledged):
            voter = replica.voters.by_id(node_id)
            peer = replica.peer(voter) if voter else None
            if peer is None or not self._may_tell(RequestKind.END_QUORUM_EPOCH, node_id):
                continue
            request = EndQuorumEpochRequest(
                replica.config.cluster_id,
                replica.node_id,
                replica.epoch,
                role.preferred,
                replica.config.endpoints,
            )
            replica.send(RequestKind.END_QUORUM_EPOCH, peer, request)

    def _turn_end(self) -> Millis:
        return self.replica.timers.after(self.replica.config.election_timeout_ms // REPEAT_SHARE)

    def _pass_turn(self, role: Resigned) -> None:
        """Make the next voter that acknowledged the preferred successor, if the first did not.

        That voter is notified again: otherwise it would wait for the first one, which may not have
        been notified.
        """
        successor = self._next_in_turn(role)
        if successor is None:
            return
        first, *others = role.preferred
        others.remove(successor)
        role.preferred = (successor, *others, first)
        role.recent_fetchers.discard(successor.node_id)
        role.unacknowledged[successor.node_id] = None
        role.turn_until = self._turn_end()
        to, late = successor.node_id, first.node_id
        text = f"{late} has not heard that it is its turn: names {to}"
        self.replica.out.note(TraceEventKind.TURN_PASSED, text, to=to, late=late)

    @staticmethod
    def _next_in_turn(role: Resigned) -> ReplicaKey | None:
        """The voter to campaign instead of the first one; None if the first acknowledged."""
        if not role.preferred or role.preferred[0].node_id in role.recent_fetchers:
            return None
        return next((key for key in role.preferred if key.node_id in role.recent_fetchers), None)

    def handle_end_response(
        self, in_flight_request: InFlightRequest, response: EndQuorumEpochResponse | RequestFailure
    ) -> None:
        """Record the acknowledgement, or retry until the next election timeout."""
        replica = self.replica
        role = replica.role
        if not isinstance(role, Resigned) or in_flight_request.epoch != replica.epoch:
            return
        is_told = not isinstance(response, RequestFailure) and response.error is ErrorCode.NONE
        if is_told:
            role.recent_fetchers.add(in_flight_request.to)
        elif role.preferred and role.preferred[0].node_id == in_flight_request.to:
            role.turn_until = replica.timers.now
        if is_told and not replica.is_stopping:
            role.unacknowledged.pop(in_flight_request.to, None)
        else:
            # A leader that waits for a successor before it stops retries: all others may be
            # stopping, too.
            backoff = replica.config.retry_backoff_ms * 5
            replica.request_manager.back_off(
                RequestKind.END_QUORUM_EPOCH, in_flight_request.to, replica.timers.after(backoff)
            )
        if not isinstance(response, RequestFailure):
            self._hear_answer(in_flight_request, response)

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadlines of repeated EndQuorumEpoch requests and of the preferred successor."""
        replica = self.replica
        if isinstance(replica.role, Resigned):
            repeat_ms = replica.config.election_timeout_ms // REPEAT_SHARE
            due += replica.request_manager.resend_deadlines(
                RequestKind.END_QUORUM_EPOCH, repeat_ms, replica.timers.now
            )
            if replica.role.turn_until is not None and self._next_in_turn(replica.role) is not None:
                due.append(replica.role.turn_until)

    # --- the voters' side -------------------------------------------------------------------------

    def handle_begin(self, request: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
        """Follow the leader that announces itself; no voter set is consulted (KIP-853)."""
        replica = self.replica
        error = self._reason_to_refuse(request) or ErrorCode.NONE
        voter = request.voter
        if error is ErrorCode.NONE:
            info = LeaderInfo(request.leader_id, request.leader_epoch, request.leader_endpoints)
            self.leader_updates.apply(info, "BeginQuorumEpoch")
            self._leader_lives(request.leader_id)
            # Rule `no_state_from_rejections`: it names the leader, even if it was meant for another
            # replica.
            if voter.node_id != replica.node_id or voter.directory_id not in (
                None,
                replica.key.directory_id,
            ):
                error = ErrorCode.INVALID_VOTER_KEY
        return BeginQuorumEpochResponse(error, self.epoch_guard.leader_info_for(error))

    def _leader_lives(self, leader_id: int) -> None:
        replica = self.replica
        if isinstance(replica.role, Follower) and replica.role.leader_id == leader_id:
            replica.leader_suspicion = None

    def handle_end(self, request: EndQuorumEpochRequest) -> EndQuorumEpochResponse:
        """Handle a leader's resignation: campaign in the order of its list."""
        replica = self.replica
        error = self._reason_to_refuse(request) or ErrorCode.NONE
        if error is ErrorCode.NONE:
            info = LeaderInfo(request.leader_id, request.leader_epoch, request.leader_endpoints)
            # A repeated request does not restart a nominee's round, which may take longer than
            # the interval.
            if self._ended != request.leader_epoch or not isinstance(replica.role, Prospective):
                self.leader_updates.apply(info, "EndQuorumEpoch")
            role = replica.role
            if isinstance(role, Follower) and role.leader_id == request.leader_id:
                turn = replica.timers.after(self.campaign_delay_ms(request.preferred_candidates))
                # A repeated request may bring its campaign forward, and never delays it.
                if role.leader_resigned and role.fetch_deadline <= turn:
                    return EndQuorumEpochResponse(error, self.epoch_guard.leader_info_for(error))
                role.leader_resigned = True
                self._ended = replica.epoch
                replica.leader_suspicion = None
                role.fetch_deadline = min(role.fetch_deadline, turn)
                wait = turn - replica.timers.now
                text = f"leader {request.leader_id} resigned: may campaign after {wait} ms"
                replica.out.note(
                    TraceEventKind.LEADER_RESIGNED, text, leader_id=request.leader_id, wait_ms=wait
                )
        return EndQuorumEpochResponse(error, self.epoch_guard.leader_info_for(error))

    def _reason_to_refuse(
        self, request: BeginQuorumEpochRequest | EndQuorumEpochRequest
    ) -> ErrorCode | None:
        replica = self.replica
        if request.cluster_id != replica.config.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if request.leader_epoch < replica.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        known = replica.election.leader_id
        if request.leader_id < 0:
            return ErrorCode.INVALID_REQUEST
        leads = isinstance(replica.role, Leader) and request.leader_epoch == replica.epoch
        if request.leader_id == replica.node_id and not leads:
            # A misrouted request of this replica, or another process with its node id.
            epoch = request.leader_epoch
            said = f"this replica is said to lead epoch {epoch}: not believed"
            replica.out.note(
                TraceEventKind.NOT_BELIEVED, said, peer=replica.node_id, claimed_epoch=epoch
            )
            return ErrorCode.INVALID_REQUEST
        leader = LeaderInfo(request.leader_id, request.leader_epoch, request.leader_endpoints)
        if self.leader_updates.single_voter_guard.doubts(leader):
            return ErrorCode.INCONSISTENT_VOTER_SET
        if (
            request.leader_epoch == replica.epoch
            and known is not None
            and known != request.leader_id
        ):
            text = replica.leader_contradictions.record_second_leader(
                request.leader_id, known, replica.epoch
            )
            replica.out.note(TraceEventKind.CONTRADICTED, text, leader_id=request.leader_id)
            return ErrorCode.INVALID_REQUEST
        if not self.epoch_guard.accepts(request.leader_epoch):
            text = f"epoch {request.leader_epoch} of leader {request.leader_id}: not believed"
            replica.out.note(
                TraceEventKind.NOT_BELIEVED,
                text,
                peer=request.leader_id,
                claimed_epoch=request.leader_epoch,
            )
            return ErrorCode.INVALID_REQUEST
        return None

    def campaign_delay_ms(self, preferred: tuple[ReplicaKey, ...]) -> Millis:
        """Delay for the voters before this one in the list (Kafka's strict exponential backoff).

        If no order is given, a small random delay keeps two voters from campaigning simultaneously.
        """
        replica = self.replica
        longest = replica.config.election_backoff_max_ms
        if not preferred:
            return replica.timers.draw(UNORDERED_JITTER_MS)
        # At kraft.version 0 the leader knows its voters only by node id.
        own = (replica.key, ReplicaKey(replica.node_id))
        index = next((i for i, key in enumerate(preferred) if key in own), None)
        if index is None:
            return longest
        if index == 0:
            return Millis(0)
        return Millis(min(longest, (longest >> (len(preferred) - 1)) << (index - 1)))
