"""Dispatches requests that change the voters, kraft.version or the leader.

Each change has a module of its own; `voter_changes` is common to all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from quorate.raft.membership.add_voter import AddVoterHandler
from quorate.raft.membership.auto_join import AutoJoin
from quorate.raft.membership.kraft_version_upgrade import KRaftVersionUpgrade
from quorate.raft.membership.leadership_transfer import LeadershipTransfer
from quorate.raft.membership.remove_voter import RemoveVoterHandler
from quorate.raft.membership.shutdown_permits import ShutdownPermits
from quorate.raft.membership.update_voter import UpdateVoterHandler
from quorate.raft.membership.voter_changes import VoterChanges
from quorate.raft.messages import (
    AddRaftVoterRequest,
    MembershipRequest,
    RemoveRaftVoterRequest,
    TakeLeaveRequest,
    TransferLeadershipRequest,
    UpdateFeaturesRequest,
    UpdateRaftVoterRequest,
)
from quorate.raft.roles import Leader

if TYPE_CHECKING:
    from quorate.raft.api import RequestFailure
    from quorate.raft.election.leader_updates import LeaderUpdates
    from quorate.raft.messages import ApiVersionsResponse
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader import LeaderReplication
    from quorate.raft.request_manager import InFlightRequest
    from quorate.raft.roles import PendingChange
    from quorate.records.ids import Millis, ReplyToken


class MembershipRequests:
    """Membership requests of one replica."""

    def __init__(
        self, replica: Replica, leader_updates: LeaderUpdates, leader_replication: LeaderReplication
    ) -> None:
        self.voter_changes = VoterChanges(replica, leader_replication)
        self.add_voter_handler = AddVoterHandler(self.voter_changes)
        self.remove_voter_handler = RemoveVoterHandler(self.voter_changes)
        self.update_voter_handler = UpdateVoterHandler(self.voter_changes, leader_updates)
        self.kraft_version_upgrade = KRaftVersionUpgrade(self.voter_changes)
        self.leadership_transfer = LeadershipTransfer(self.voter_changes)
        self.shutdown_permits = ShutdownPermits(self.voter_changes)
        self.auto_join = AutoJoin(replica, leader_updates)

    def handle(self, token: ReplyToken, request: MembershipRequest) -> None:
        """Reject or begin a request; the answer may come later."""
        match request:
            case AddRaftVoterRequest():
                self.add_voter_handler.handle(token, request)
            case RemoveRaftVoterRequest():
                self.remove_voter_handler.handle(token, request)
            case UpdateRaftVoterRequest():
                self.update_voter_handler.handle(token, request)
            case UpdateFeaturesRequest():
                self.kraft_version_upgrade.handle(token, request)
            case TransferLeadershipRequest():
                self.leadership_transfer.handle(token, request)
            case TakeLeaveRequest():
                self.shutdown_permits.handle(token, request)
            case _:
                assert_never(request)

    @property
    def may_append(self) -> bool:
        """True while a change waits to be appended, which the next timer may do."""
        return self._waiting() is not None

    def handle_versions(
        self, in_flight_request: InFlightRequest, answer: ApiVersionsResponse | RequestFailure
    ) -> None:
        """Append the voter set with the voter that has answered, if nothing else is pending."""
        if self.add_voter_handler.handle_versions(in_flight_request, answer):
            self.advance()

    def advance(self) -> None:
        """Append the voter set of the pending change, if a majority of it has fetched."""
        role, pending = self.voter_changes.replica.role, self._waiting()
        if pending is None or pending.call is not None:
            return
        assert isinstance(role, Leader)
        if self.voter_changes.why_silent(role, pending) is not None:
            return
        role.pending = None
        if isinstance(pending.request, AddRaftVoterRequest):
            self.add_voter_handler.finish(pending, pending.request)
        elif pending.request is not None:
            self.remove_voter_handler.finish(pending, pending.request)

    def _waiting(self) -> PendingChange | None:
        """The pending change that is not appended yet; None without one."""
        role = self.voter_changes.replica.role
        pending = role.pending if isinstance(role, Leader) else None
        return pending if pending is not None and pending.offset is None else None

    def expire(self) -> None:
        """Answer callers whose requests have timed out."""
        self.voter_changes.expire()
        self.leadership_transfer.expire()

    def drive(self) -> None:
        """Send this replica's own reports and requests, and resign when a successor is ready."""
        self.leadership_transfer.advance()
        self.update_voter_handler.drive()
        self.auto_join.drive()

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadlines of all membership requests."""
        self.voter_changes.add_deadlines(due)
        self.leadership_transfer.add_deadlines(due)
        self.update_voter_handler.add_deadlines(due)
        self.auto_join.add_deadlines(due)
