"""An undamaged log is never classified as damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import RecoveredState
    from quorate.sim.views import NodeView


class UndamagedLogsStayUndamaged(Invariant):
    """Recovery never classifies an undamaged log as damaged, for any end of its process.

    Damage is bit rot that has not been overwritten, until a recovery has handled it.

    Sources: rules `flushed_end_file`, `recovery_flush` and `log_generation`. A healing voter may
    not campaign: if three voters lost power at the same time, the quorum would have no leader.
    """

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        if recovered.remembered_end is not None and not node.was_harmed:
            raise Violation(
                f"node {node.node_id} takes its log up to {recovered.end} for damaged, once "
                f"{recovered.remembered_end}, and nothing has harmed it"
            )
