"""Pre-vote protects a healthy leader: no other replica raises the epoch above its own."""

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
    """While a leader is heard by a majority of its voters, nobody raises the epoch above its own.

    Source: KIP-996. Heard means: leading, or following with an answer received, without a break
    from before the pre-votes were asked for.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        # A role is an object of its own each time it is entered, so it tells a break within a step.
        self._hearing_since: dict[ReplicaKey, tuple[Role, int]] = {}
        self._asking_since: dict[ReplicaKey, int] = {}

    def stopped(self, node: NodeView) -> None:
        self._hearing_since.pop(node.key, None)
        self._asking_since.pop(node.key, None)

    def heard_leader(self, node: NodeView) -> None:
        current = node.core.replica.role
        known = self._hearing_since.get(node.key)
        if not _has_heard_leader(current):
            # What its leader said was not believed (rule 29).
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
        # A node that starts as a candidate raised its epoch before it was stopped.
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
    """It leads, or follows with an answer of its leader received while that was waited for."""
    return isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)
