"""State machine safety."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.sim.views import NodeView


class StateMachineSafety(Invariant):
    """No two replicas report different records as committed at the same offset.

    Source: Raft paper, section 5.4.3 (State Machine Safety).
    """

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        high_watermark = progress.high_watermark
        if high_watermark is None:
            return
        history = self.world.oracle
        if high_watermark > history.end:
            if node.log.chain_at(history.end) != history.chains[history.end]:
                raise Violation(self._differs(node, history.end))
            for entry in node.log.between(history.end, high_watermark):
                history.commit(entry, progress.epoch)
                self.watch.committed(node, entry)
            if history.end != high_watermark:
                raise Violation(
                    f"the high watermark {high_watermark} of node {node.node_id} "
                    f"is no end of a batch in its log (end {node.log.end})"
                )
        elif high_watermark > node.log.start.offset:
            chain = node.log.chain_at(high_watermark)
            if chain is None or chain != history.chains.get(high_watermark):
                raise Violation(self._differs(node, high_watermark))

    @staticmethod
    def _differs(node: NodeView, offset: int) -> str:
        return f"node {node.node_id} calls another history committed below {offset}"
