"""At most one leader per epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.records.ids import Epoch, NodeId
    from quorate.sim.views import ClusterView, NodeView


class ElectionSafety(Invariant):
    """At most one process leads an epoch; a restarted process counts as another one.

    Source: Raft paper, section 5.2; KIP-595, "Leader Election and Fencing". A leader that restarted
    may have lost records that others fetched, so it must not continue to lead its epoch.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._leaders: dict[Epoch, tuple[NodeId, int]] = {}

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        if not progress.is_leader:
            return
        who = (node.node_id, node.incarnation)
        first = self._leaders.setdefault(progress.epoch, who)
        if first != who:
            raise Violation(
                f"epoch {progress.epoch} has two leaders: node {first[0]} (life {first[1]}) "
                f"and node {who[0]} (life {who[1]})"
            )
