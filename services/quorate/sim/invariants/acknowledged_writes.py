"""Committed records are on the disks of a majority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.records.ids import Offset
    from quorate.records.voters import VoterSet
    from quorate.sim.views import ClusterView, NodeView


class AcknowledgedSurvives(Invariant):
    """Records that a leader reports as committed are on the disks of a majority of its voters.

    Source: Raft paper, section 5.4.2, with rules `flushed_end_file` and `recovery_flush`: only
    flushed records count. Data that was corrupted later or was on a replaced disk counts: it
    existed when acknowledged.
    """

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        if progress.is_leader and progress.high_watermark is not None:
            before = node.progress.high_watermark if node.progress is not None else None
            if before is None or progress.high_watermark > before:
                self._check(node, progress.high_watermark)

    def acknowledging(self, node: NodeView, offset: Offset) -> None:
        # Its copies were checked when it was committed; the voters may have changed since.
        known = None if node.progress is None else node.progress.high_watermark
        if known is None or known < offset:
            raise Violation(
                f"node {node.node_id} acknowledges what is below {offset}, "
                f"and its core knows of no commit beyond {known}"
            )

    def _check(self, node: NodeView, offset: Offset) -> None:
        voters = node.log.voters
        having = holders(self.world, node, voters, offset)
        if len(having) < voters.majority:
            raise Violation(
                f"node {node.node_id} commits up to {offset}, which only {having} of the voters "
                f"{[voter.key.node_id for voter in voters]} have on their platters"
            )


def holders(world: ClusterView, node: NodeView, voters: VoterSet, offset: Offset) -> list[int]:
    """Those of `voters` with this leader's log up to `offset` on their platters."""
    chain = node.log.chain_at(offset)
    nodes = world.nodes
    return [int(v.key.node_id) for v in voters if nodes[v.key.node_id].holds(v, offset, chain)]
