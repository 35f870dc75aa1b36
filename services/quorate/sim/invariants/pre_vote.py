"""Pre-vote protects a healthy leader: no other replica starts a later epoch than the leader's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.roles import Follower, Leader
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.raft.roles import Role
    from quorate.records.ids import Epoch, ReplicaKey
    from quorate.sim.views import ClusterView, NodeView


class HealthyLeaderKeepsEpoch(Invariant):
    """While a majority is in contact with a leader, no replica starts an epoch after the leader's.

    Source: KIP-996. A voter is in contact if it is the leader, or a follower that has received a
    response of the leader. It must have been so, without interruption, since before the candidate
    requested its pre-votes.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        # Each role transition creates a new object, so its identity reveals an interruption.
        self._hearing_since: dict[ReplicaKey, tuple[Role, int]] = {}
        self._asking_since: dict[ReplicaKey, int] = {}

    def stopped(self, node: NodeView) -> None:
        self._hearing_since.pop(node.key, None)
        self._asking_since.pop(node.key, None)

    def heard_leader(self, node: NodeView) -> None:
        current = node.core.replica.role
        known = self._hearing_since.get(node.key)
        if not _has_heard_leader(current):
            # The follower has rejected the response as implausible (rule `leader_contradiction`).
            self._hearing_since.pop(node.key, None)
        elif known is None or known[0] is not current:
            self._hearing_since[node.key] = (current, self.world.now_us)

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        role = progress.role
        if role == "leader":
            self.heard_leader(node)
        before = node.progress.role if node.progress is not None else None
        if role == "prospective" and before != "prospective":
            self._asking_since[node.key] = self.world.now_us
        # A node that starts as a candidate has raised its epoch before it stopped.
        if role == "candidate" and before not in (None, "candidate"):
            self._check(node, progress.epoch, self._asking_since.get(node.key, self.world.now_us))

    def _check(self, node: NodeView, epoch: Epoch, asking_since: int) -> None:
        for leader in self.world.running():
            progress = leader.progress
            if progress is None or not progress.is_leader or progress.epoch != epoch - 1:
                continue
            hearing = [
                voter.key.node_id
                for voter in leader.log.voters
                if self._hears(voter.key, progress.epoch, asking_since)
            ]
            if len(hearing) >= leader.log.voters.majority:
                raise Violation(
                    f"node {node.node_id} raises the epoch to {epoch}, although {hearing} of "
                    f"{len(leader.log.voters)} voters hear leader {leader.node_id}"
                )

    def _hears(self, key: ReplicaKey, epoch: Epoch, asking_since: int) -> bool:
        known = self._hearing_since.get(key)
        if known is None or known[1] >= asking_since:
            return False
        node = self.world.nodes[key.node_id]
        replica = node.core.replica
        is_same = node.key == key and replica.role is known[0] and replica.epoch == epoch
        return is_same and _has_heard_leader(replica.role)


def _has_heard_leader(role: Role) -> bool:
    """True if it leads, or is a follower that has received a Fetch response."""
    return isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)
