"""A stopping replica neither campaigns nor leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.sim.views import NodeView

_BEGUN: Final = frozenset({"prospective", "candidate", "leader"})


class StoppingReplicasDoNotCampaign(Invariant):
    """A process that was asked to stop neither requests votes nor becomes leader.

    Source: rule `stopping_replica`.
    """

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        before = node.progress.role if node.progress is not None else None
        is_new = progress.role in _BEGUN and progress.role != before
        if is_new and node.core.replica.is_stopping:
            raise Violation(f"node {node.node_id} becomes {progress.role}, although it is to stop")
