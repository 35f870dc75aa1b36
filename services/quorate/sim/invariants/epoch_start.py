"""A leader commits only through a record of its own epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.sim.views import NodeView


class CommitsOwnEpochFirst(Invariant):
    """A leader's high watermark rises only to cover a record of the leader's own epoch.

    Source: Raft paper, section 5.4.2 and figure 8; KIP-595, "High Watermark".
    """

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        before = node.progress
        if not progress.is_leader or progress.epoch_start is None or before is None:
            return
        high_watermark = progress.high_watermark or 0
        if high_watermark > (before.high_watermark or 0) and high_watermark <= progress.epoch_start:
            raise Violation(
                f"leader {node.node_id} commits up to {high_watermark}, "
                f"but its epoch {progress.epoch} starts at {progress.epoch_start}"
            )
