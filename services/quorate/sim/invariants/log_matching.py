"""Log matching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.records.ids import Epoch, NodeId, Offset
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import ClusterView, NodeView


class LogMatching(Invariant):
    """Two logs that hold a batch of one epoch ending at one offset are equal up to there.

    Source: Raft paper, section 5.3; KIP-595, "Log Reconciliation".
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._chains: dict[tuple[Offset, Epoch], tuple[int, NodeId]] = {}

    def appended(self, node: NodeView, entry: Entry) -> None:
        first = self._chains.setdefault((entry.end, entry.epoch), (entry.chain, node.node_id))
        if first[0] != entry.chain:
            raise Violation(
                f"logs of nodes {first[1]} and {node.node_id} both reach "
                f"{entry.end}@{entry.epoch}, but differ below"
            )
