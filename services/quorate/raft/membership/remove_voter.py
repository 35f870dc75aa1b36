"""RemoveRaftVoter at the leader: removes a voter, possibly the leader itself (KIP-853).

A removed leader leads until the removal is committed, without counting itself, and then resigns. A
removed voter is decommissioned: it does not auto-join (rule `decommissioned_voters`). A voter whose
pod is scaled down is not decommissioned, since no operator has decided about its disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.membership.rejection import Obstacle
from quorate.raft.messages import Reason, RemoveRaftVoterRequest
from quorate.raft.roles import Leader, PendingChange
from quorate.raft.trace_events import NoteKind
from quorate.raft.trace_fields import change_values
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.membership.voter_changes import Changes
    from quorate.records.ids import ReplicaKey, ReplyToken


class Removing:
    """RemoveRaftVoter at a leader."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.r = changes.r

    def handle(self, token: ReplyToken, request: RemoveRaftVoterRequest) -> None:
        """Reject an invalid request; otherwise wait for Fetches of most remaining voters."""
        r = self.r
        obstacle = self._why_refused(request)
        if obstacle is not None:
            self.changes.refuse(token, obstacle)
            return
        role = r.role
        assert isinstance(role, Leader)
        what = f"remove voter {request.voter}"
        about = change_values("remove", request.voter)
        deadline = r.timers.after(request.timeout_ms or r.config.request_timeout_ms)
        pending = PendingChange(token, what, deadline, about, request=request)
        if not request.force:
            self.changes.begin_round(role, pending)
        if self.changes.why_silent(role, pending) is None:
            self._append(pending, request)
            return
        left = self.changes.voters_after(request)
        text = f"{what}: waits until a majority of {left.ids} has fetched"
        r.out.note(NoteKind.CHANGE_BEGUN, text, **about)
        self.changes.wait(role, pending)

    def finish(self, pending: PendingChange, request: RemoveRaftVoterRequest) -> None:
        """Append the remaining voter set, unless a precondition no longer holds."""
        obstacle = self._why_refused(request)
        if obstacle is None:
            self._append(pending, request)
        else:
            self.changes.refuse(pending.token, obstacle)

    def _append(self, pending: PendingChange, request: RemoveRaftVoterRequest) -> None:
        r = self.r
        r.out.note(
            NoteKind.CHANGE_APPENDED,
            f"{pending.what}: appended at offset {r.log.end.offset}",
            **pending.about,
            offset=r.log.end.offset,
        )
        self.changes.append(pending, voters=self.changes.voters_after(request))

    def _why_refused(self, request: RemoveRaftVoterRequest) -> Obstacle | None:
        """The rejection that is known without a Fetch of the remaining voters."""
        obstacle = self.changes.why_not_leader(request.cluster_id)
        if obstacle is not None:
            return obstacle
        role = self.r.role
        assert isinstance(role, Leader)
        return self.changes.why_not_now(role) or self._why_not(role, request)

    def _why_not(self, role: Leader, request: RemoveRaftVoterRequest) -> Obstacle | None:
        r = self.r
        key = request.voter
        twin = r.voters.by_id(key.node_id)
        if twin is None or twin.key != key:
            ids = ", ".join(str(voter.key) for voter in r.voters)
            text = f"{key} is no voter: the voters are {ids} (node id : directory id)"
            return Obstacle(ErrorCode.VOTER_NOT_FOUND, Reason.VOTER_NOT_FOUND, text)
        if request.auto_join and self._lives(role, key):
            text = (
                f"voter {key} is alive and fetched within {r.config.fetch_timeout_ms} ms, so "
                "another node with its id may not take its place: give each node an id of its own"
            )
            return Obstacle(ErrorCode.REQUEST_TIMED_OUT, Reason.VOTER_ALIVE, text)
        left = r.voters.without(key)
        if not left.voters:
            text = f"voter {key} is the last one: add another voter first"
            return Obstacle(ErrorCode.INVALID_REQUEST, Reason.LAST_VOTER, text)
        return None if request.force else self.changes.why_no_live_majority(role, left)

    def _lives(self, role: Leader, key: ReplicaKey) -> bool:
        """A voter that has to truncate its log, or needs a snapshot, is also alive.

        See rule `live_voter_not_evicted`.
        """
        progress = role.progress.get(key)
        return key == self.r.key or (
            progress is not None
            and (self.changes.is_alive(progress) or self.changes.is_recent(progress.asked_ms))
        )
