"""Applies an epoch, leader or leader endpoint learned from a peer (Kafka's maybeTransition)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.request_manager import CallKind
from quorate.raft.roles import Candidate, Follower, Prospective, Unattached
from quorate.raft.trace_events import Cause, NoteKind

if TYPE_CHECKING:
    from quorate.raft.election.transitions import Becoming
    from quorate.raft.identity.single_voter_guard import Rivalry
    from quorate.raft.messages import LeaderInfo
    from quorate.raft.replica import Replica
    from quorate.records.voters import Endpoint


class Learning:
    """Updates of epoch and leader, for one replica."""

    def __init__(self, replica: Replica, becoming: Becoming, rivalry: Rivalry) -> None:
        self.r = replica
        self.becoming = becoming
        self.rivalry = rivalry

    def learn(self, info: LeaderInfo, why: str) -> None:
        """Apply an epoch, and possibly its leader, from a peer (Kafka: maybeTransition)."""
        r, becoming = self.r, self.becoming
        if info.epoch < r.epoch or info.leader_id == r.node_id or self.rivalry.doubts(info):
            return
        endpoints, leader_id = info.endpoints, info.leader_id
        known = r.election.leader_id
        if info.epoch == r.epoch and known is not None and leader_id not in (None, known):
            text = r.contradictions.add_second_leader(leader_id, known, info.epoch)
            r.out.note(NoteKind.CONTRADICTED, text, leader_id=leader_id)
            return
        has_address = bool(endpoints) or (
            leader_id is not None and r.voters.by_id(leader_id) is not None
        )
        if info.epoch > r.epoch:
            if leader_id is not None and has_address:
                becoming.follower(info.epoch, leader_id, endpoints, Cause.LEADER_LEARNED, why)
            else:
                becoming.unattached(info.epoch, Cause.HIGHER_EPOCH, f"{why}: epoch {info.epoch}")
        elif leader_id is not None and has_address and self._may_follow_now():
            becoming.follower(info.epoch, leader_id, endpoints, Cause.LEADER_LEARNED, why)
        elif endpoints and isinstance(r.role, Follower):
            r.leader_endpoints = endpoints

    def move_leader(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Apply new endpoints that a peer reports for the leader of this epoch."""
        r = self.r
        before = r.leader_peer()
        r.leader_endpoints = endpoints
        after = r.leader_peer()
        if after != before and after is not None:
            text = f"leader {after.node_id} is at {after.host}:{after.port}"
            r.out.note(NoteKind.LEADER_MOVED, text, leader_id=after.node_id)
            r.calls.end_backoff(CallKind.FETCH, after.node_id)

    def _may_follow_now(self) -> bool:
        return isinstance(self.r.role, Unattached | Prospective | Candidate)
