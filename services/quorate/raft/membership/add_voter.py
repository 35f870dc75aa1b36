"""AddRaftVoter at the leader: makes a caught-up observer a voter (KIP-853, "AddVoter").

The leader checks the request. Then it asks the observer for its identity and supported versions
(ApiVersions), while it waits for Fetches of the voters. Then it checks again and appends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import Peer, RequestFailure
from quorate.raft.membership.rejection import Rejection
from quorate.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MembershipResponse,
    Reason,
)
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Leader, PendingChange
from quorate.raft.trace_events import TraceEventKind
from quorate.raft.trace_fields import voter_change_fields
from quorate.records.errors import ErrorCode
from quorate.records.ids import format_uuid
from quorate.records.voters import Voter

if TYPE_CHECKING:
    from quorate.raft.membership.voter_changes import VoterChanges
    from quorate.raft.request_manager import InFlightRequest
    from quorate.records.ids import ReplicaKey, ReplyToken


class AddVoterHandler:
    """AddRaftVoter at a leader."""

    def __init__(self, voter_changes: VoterChanges) -> None:
        self.voter_changes = voter_changes
        self.replica = voter_changes.replica

    def handle(self, token: ReplyToken, request: AddRaftVoterRequest) -> None:
        """Reject an invalid request immediately; otherwise ask the new voter for its versions."""
        replica = self.replica
        obstacle = self.voter_changes.check_leader(request.cluster_id) or self._why_malformed(
            request
        )
        if obstacle is None:
            assert isinstance(replica.role, Leader)
            obstacle = self.check(
                replica.role, request.voter, auto_join=request.auto_join, force=request.force
            )
        if obstacle is not None:
            self.voter_changes.reject(token, obstacle)
            return
        assert isinstance(replica.role, Leader)
        endpoint = self.voter_changes.address(request.listeners)
        assert endpoint is not None
        deadline = replica.timers.after(request.timeout_ms or replica.config.request_timeout_ms)
        key = request.voter
        what = f"add voter {key}"
        about = voter_change_fields("add", key)
        replica.out.note(
            TraceEventKind.CHANGE_BEGUN, f"{what} at {endpoint}: asks for its versions", **about
        )
        peer = Peer(key.node_id, endpoint.host, endpoint.port)
        call = replica.send(RequestKind.API_VERSIONS, peer, ApiVersionsRequest())
        pending = PendingChange(token, what, deadline, about, request=request, call=call.call)
        if not request.force:
            self.voter_changes.begin_round(replica.role, pending)
        self.voter_changes.wait(replica.role, pending)

    def _why_malformed(self, request: AddRaftVoterRequest) -> Rejection | None:
        if request.voter.directory_id is None:
            text = "voter_directory_id is missing: take it from the new voter's meta.properties"
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.DIRECTORY_ID_UNKNOWN, text)
        return self.voter_changes.check_listeners(request.listeners)

    def check(
        self, role: Leader, key: ReplicaKey, *, auto_join: bool = False, force: bool = False
    ) -> Rejection | None:
        """The reason why this replica may not become a voter now; None if it may."""
        replica = self.replica
        obstacle = self.voter_changes.check_preconditions(role)
        if obstacle is not None:
            return obstacle
        obstacle = self.check_duplicate(key)
        if obstacle is not None:
            return obstacle
        if auto_join and key in replica.voters.decommissioned:
            text = (
                f"node {key.node_id} with {_directory(key)} was removed and does not come back by "
                "itself: add it by hand (quorate metadata-quorum add-controller)"
            )
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.VOTER_DECOMMISSIONED, text)
        lagging = self.voter_changes.check_caught_up(role, key)
        if lagging is not None or force:
            return lagging
        return self.voter_changes.check_live_majority(role, replica.voters.with_voter(Voter(key)))

    def check_duplicate(self, key: ReplicaKey) -> Rejection | None:
        """The rejection if the node id is already a voter: it has one vote, with any directory."""
        twin = self.replica.voters.by_id(key.node_id)
        if twin is None:
            return None
        text = (
            f"node {key.node_id} is a voter already, with {_directory(twin.key)}: a node id "
            "votes once; remove that voter first if its disk is gone"
        )
        return Rejection(ErrorCode.DUPLICATE_VOTER, Reason.DUPLICATE_VOTER, text)

    def handle_versions(
        self, in_flight_request: InFlightRequest, answer: ApiVersionsResponse | RequestFailure
    ) -> bool:
        """Handle the new voter's answer, or its absence; True if it may be added."""
        role = self.replica.role
        pending = role.pending if isinstance(role, Leader) else None
        if pending is None or pending.call != in_flight_request.call:
            return False
        request = pending.request
        assert isinstance(role, Leader)
        assert isinstance(request, AddRaftVoterRequest)
        if isinstance(answer, RequestFailure):
            role.pending = None
            self.voter_changes.refuse_unreachable(pending)
            return False
        obstacle = self._why_unsuited(request, answer)
        if obstacle is not None:
            role.pending = None
            self.voter_changes.reject(pending.token, obstacle)
            return False
        pending.call = None
        pending.voter = Voter(
            request.voter, request.listeners, answer.kraft_version_min, answer.kraft_version_max
        )
        return True

    def finish(self, pending: PendingChange, request: AddRaftVoterRequest) -> None:
        """Append the new voter set, unless a precondition no longer holds."""
        replica = self.replica
        role, voter = replica.role, pending.voter
        assert isinstance(role, Leader)
        assert voter is not None, "it has answered"
        obstacle = (
            self.voter_changes.check_leader(request.cluster_id)
            or self.check(role, voter.key, auto_join=request.auto_join, force=request.force)
            or self.voter_changes.check_record_limits(replica.voters.with_voter(voter))
        )
        if obstacle is not None:
            self.voter_changes.reject(pending.token, obstacle)
            return
        replica.out.note(
            TraceEventKind.CHANGE_APPENDED,
            f"{pending.what}: appended at offset {replica.log.end.offset}",
            **pending.trace_fields,
            offset=replica.log.end.offset,
        )
        if not request.ack_when_committed:
            replica.out.reply(
                pending.token, MembershipResponse(ErrorCode.NONE, "", replica.leader_info)
            )
        waiting = pending if request.ack_when_committed else None
        self.voter_changes.append(waiting, voters=replica.voters.with_voter(voter))

    def _why_unsuited(
        self, request: AddRaftVoterRequest, answer: ApiVersionsResponse
    ) -> Rejection | None:
        replica = self.replica
        key = request.voter
        endpoint = self.voter_changes.address(request.listeners)
        if answer.error is not ErrorCode.NONE:
            text = f"node {key.node_id} at {endpoint} answers ApiVersions with {answer.error.name}"
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_UNREACHABLE, text)
        if answer.key != key or answer.cluster_id != replica.config.cluster_id:
            text = (
                f"at {endpoint} answers node {answer.key.node_id} with {_directory(answer.key)} of "
                f"cluster {answer.cluster_id}, not node {key.node_id} with {_directory(key)}: give "
                "the new voter's own address and directory id"
            )
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.VOTER_IS_SOMEBODY_ELSE, text)
        finalised = replica.log.kraft_version
        if not answer.kraft_version_min <= finalised <= answer.kraft_version_max:
            text = (
                f"node {key.node_id} supports kraft.version {answer.kraft_version_min} to "
                f"{answer.kraft_version_max}, and {finalised} is in force: upgrade its software"
            )
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.VOTER_UNSUPPORTED, text)
        return None


def _directory(key: ReplicaKey) -> str:
    if key.directory_id is None:
        return "no directory id"
    return f"directory id {format_uuid(key.directory_id)}"
