"""Dispatches requests that change the voters, kraft.version or the leader.

Each change has a module of its own; `voter_changes` is common to all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from quorate.raft.membership.add_voter import Adding
from quorate.raft.membership.auto_join import Joining
from quorate.raft.membership.kraft_version_upgrade import Upgrading
from quorate.raft.membership.leadership_transfer import HandingOver
from quorate.raft.membership.remove_voter import Removing
from quorate.raft.membership.shutdown_permits import Leaving
from quorate.raft.membership.update_voter import Updating
from quorate.raft.membership.voter_changes import Changes
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
    from quorate.raft.api import CallFailure
    from quorate.raft.election.leader_updates import Learning
    from quorate.raft.messages import ApiVersionsResponse
    from quorate.raft.replica import Replica
    from quorate.raft.replication.leader import Leading
    from quorate.raft.request_manager import Call
    from quorate.raft.roles import PendingChange
    from quorate.records.ids import Millis, ReplyToken


class Membership:
    """Membership requests of one replica."""

    def __init__(self, replica: Replica, learning: Learning, leading: Leading) -> None:
        self.changes = Changes(replica, leading)
        self.adding = Adding(self.changes)
        self.removing = Removing(self.changes)
        self.updating = Updating(self.changes, learning)
        self.upgrading = Upgrading(self.changes)
        self.handing_over = HandingOver(self.changes)
        self.leaving = Leaving(self.changes)
        self.joining = Joining(replica, learning)

    def handle(self, token: ReplyToken, request: MembershipRequest) -> None:
        """Reject or begin a request; the answer may come later."""
        match request:
            case AddRaftVoterRequest():
                self.adding.handle(token, request)
            case RemoveRaftVoterRequest():
                self.removing.handle(token, request)
            case UpdateRaftVoterRequest():
                self.updating.handle(token, request)
            case UpdateFeaturesRequest():
                self.upgrading.handle(token, request)
            case TransferLeadershipRequest():
                self.handing_over.handle(token, request)
            case TakeLeaveRequest():
                self.leaving.handle(token, request)
            case _:
                assert_never(request)

    @property
    def may_append(self) -> bool:
        """True while a change waits to be appended, which the next timer may do."""
        return self._waiting() is not None

    def handle_versions(self, call: Call, answer: ApiVersionsResponse | CallFailure) -> None:
        """Append the voter set with the voter that has answered, if nothing else is pending."""
        if self.adding.handle_versions(call, answer):
            self.advance()

    def advance(self) -> None:
        """Append the voter set of the pending change, if a majority of it has fetched."""
        role, pending = self.changes.r.role, self._waiting()
        if pending is None or pending.call is not None:
            return
        assert isinstance(role, Leader)
        if self.changes.why_silent(role, pending) is not None:
            return
        role.pending = None
        if isinstance(pending.request, AddRaftVoterRequest):
            self.adding.finish(pending, pending.request)
        elif pending.request is not None:
            self.removing.finish(pending, pending.request)

    def _waiting(self) -> PendingChange | None:
        """The pending change that is not appended yet; None without one."""
        role = self.changes.r.role
        pending = role.pending if isinstance(role, Leader) else None
        return pending if pending is not None and pending.offset is None else None

    def expire(self) -> None:
        """Answer callers whose requests have timed out."""
        self.changes.expire()
        self.handing_over.expire()

    def drive(self) -> None:
        """Send this replica's own reports and requests, and resign when a successor is ready."""
        self.handing_over.advance()
        self.updating.drive()
        self.joining.drive()

    def add_deadlines(self, due: list[Millis]) -> None:
        """Add the deadlines of all membership requests."""
        self.changes.add_deadlines(due)
        self.handing_over.add_deadlines(due)
        self.updating.add_deadlines(due)
        self.joining.add_deadlines(due)
