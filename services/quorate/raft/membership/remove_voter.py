"""RemoveRaftVoter at the leader: removes a voter, possibly the leader itself (KIP-853).

A removed leader leads until the removal is committed, without counting itself, and then resigns. A
removed voter is decommissioned: it does not auto-join (rule `decommissioned_voters`). A voter whose
pod is scaled down is not decommissioned, since no operator has decided about its disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.membership.rejection import Rejection
from quorate.raft.messages import Reason, RemoveRaftVoterRequest
from quorate.raft.roles import Leader, PendingChange
from quorate.raft.trace_events import TraceEventKind
from quorate.raft.trace_fields import voter_change_fields
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.membership.voter_changes import VoterChanges
    from quorate.records.ids import ReplicaKey, ReplyToken


class RemoveVoterHandler:
    """RemoveRaftVoter at a leader."""

    def __init__(self, voter_changes: VoterChanges) -> None:
        self.voter_changes = voter_changes
        self.replica = voter_changes.replica

    def handle(self, token: ReplyToken, request: RemoveRaftVoterRequest) -> None:
        """Reject an invalid request; otherwise wait for Fetches of most remaining voters."""
        replica = self.replica
        obstacle = self._why_refused(request)
        if obstacle is not None:
            self.voter_changes.reject(token, obstacle)
            return
        role = replica.role
        assert isinstance(role, Leader)
        what = f"remove voter {request.voter}"
        about = voter_change_fields("remove", request.voter)
        deadline = replica.timers.after(request.timeout_ms or replica.config.request_timeout_ms)
        pending = PendingChange(token, what, deadline, about, request=request)
        if not request.force:
            self.voter_changes.begin_round(role, pending)
        if self.voter_changes.why_silent(role, pending) is None:
            self._append(pending, request)
            return
        left = self.voter_changes.voters_after(request)
        text = f"{what}: waits until a majority of {left.ids} has fetched"
        replica.out.note(TraceEventKind.CHANGE_BEGUN, text, **about)
        self.voter_changes.wait(role, pending)

    def finish(self, pending: PendingChange, request: RemoveRaftVoterRequest) -> None:
        """Append the remaining voter set, unless a precondition no longer holds."""
        obstacle = self._why_refused(request)
        if obstacle is None:
            self._append(pending, request)
        else:
            self.voter_changes.reject(pending.token, obstacle)

    def _append(self, pending: PendingChange, request: RemoveRaftVoterRequest) -> None:
        replica = self.replica
        replica.out.note(
            TraceEventKind.CHANGE_APPENDED,
            f"{pending.what}: appended at offset {replica.log.end.offset}",
            **pending.trace_fields,
            offset=replica.log.end.offset,
        )
        self.voter_changes.append(pending, voters=self.voter_changes.voters_after(request))

    def _why_refused(self, request: RemoveRaftVoterRequest) -> Rejection | None:
        """The rejection that is known without a Fetch of the remaining voters."""
        obstacle = self.voter_changes.check_leader(request.cluster_id)
        if obstacle is not None:
            return obstacle
        role = self.replica.role
        assert isinstance(role, Leader)
        return self.voter_changes.check_preconditions(role) or self._why_not(role, request)

    def _why_not(self, role: Leader, request: RemoveRaftVoterRequest) -> Rejection | None:
        replica = self.replica
        key = request.voter
        twin = replica.voters.by_id(key.node_id)
        if twin is None or twin.key != key:
            ids = ", ".join(str(voter.key) for voter in replica.voters)
            text = f"{key} is no voter: the voters are {ids} (node id : directory id)"
            return Rejection(ErrorCode.VOTER_NOT_FOUND, Reason.VOTER_NOT_FOUND, text)
        if request.auto_join and self._lives(role, key):
            text = (
                f"voter {key} is alive and fetched within {replica.config.fetch_timeout_ms} ms, so "
                "another node with its id may not take its place: give each node an id of its own"
            )
            return Rejection(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_ALIVE, text)
        left = replica.voters.without(key)
        if not left.voters:
            text = f"voter {key} is the last one: add another voter first"
            return Rejection(ErrorCode.INVALID_REQUEST, Reason.LAST_VOTER, text)
        return None if request.force else self.voter_changes.check_live_majority(role, left)

    def _lives(self, role: Leader, key: ReplicaKey) -> bool:
        """A voter that has to truncate its log, or needs a snapshot, is also alive.

        See rule `live_voter_not_evicted`.
        """
        progress = role.progress.get(key)
        return key == self.replica.key or (
            progress is not None
            and (
                self.voter_changes.is_alive(progress)
                or self.voter_changes.is_recent(progress.last_contact_ms)
            )
        )
