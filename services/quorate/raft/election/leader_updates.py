"""Applies an epoch, leader or leader endpoint learned from a peer (Kafka's maybeTransition)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Candidate, Follower, Prospective, Unattached
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind

if TYPE_CHECKING:
    from quorate.raft.election.transitions import RoleTransitions
    from quorate.raft.identity.single_voter_guard import SingleVoterGuard
    from quorate.raft.messages import LeaderInfo
    from quorate.raft.replica import Replica
    from quorate.records.voters import Endpoint


class LeaderUpdates:
    """Updates of epoch and leader, for one replica."""

    def __init__(
        self,
        replica: Replica,
        role_transitions: RoleTransitions,
        single_voter_guard: SingleVoterGuard,
    ) -> None:
        self.replica = replica
        self.role_transitions = role_transitions
        self.single_voter_guard = single_voter_guard

    def apply(self, info: LeaderInfo, why: str) -> None:
        """Apply an epoch, and possibly its leader, from a peer (Kafka: maybeTransition)."""
        replica, becoming = self.replica, self.role_transitions
        if (
            info.epoch < replica.epoch
            or info.leader_id == replica.node_id
            or self.single_voter_guard.doubts(info)
        ):
            return
        endpoints, leader_id = info.endpoints, info.leader_id
        known = replica.election.leader_id
        if info.epoch == replica.epoch and known is not None and leader_id not in (None, known):
            text = replica.leader_contradictions.record_second_leader(leader_id, known, info.epoch)
            replica.out.note(TraceEventKind.CONTRADICTED, text, leader_id=leader_id)
            return
        has_address = bool(endpoints) or (
            leader_id is not None and replica.voters.by_id(leader_id) is not None
        )
        if info.epoch > replica.epoch:
            if leader_id is not None and has_address:
                becoming.become_follower(
                    info.epoch, leader_id, endpoints, RoleChangeCause.LEADER_LEARNED, why
                )
            else:
                becoming.become_unattached(
                    info.epoch, RoleChangeCause.HIGHER_EPOCH, f"{why}: epoch {info.epoch}"
                )
        elif leader_id is not None and has_address and self._may_follow_now():
            becoming.become_follower(
                info.epoch, leader_id, endpoints, RoleChangeCause.LEADER_LEARNED, why
            )
        elif endpoints and isinstance(replica.role, Follower):
            replica.leader_endpoints = endpoints

    def update_leader_endpoints(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Apply new endpoints that a peer reports for the leader of this epoch."""
        replica = self.replica
        before = replica.leader_peer()
        replica.leader_endpoints = endpoints
        after = replica.leader_peer()
        if after != before and after is not None:
            text = f"leader {after.node_id} is at {after.host}:{after.port}"
            replica.out.note(TraceEventKind.LEADER_MOVED, text, leader_id=after.node_id)
            replica.request_manager.end_backoff(RequestKind.FETCH, after.node_id)

    def _may_follow_now(self) -> bool:
        return isinstance(self.replica.role, Unattached | Prospective | Candidate)
