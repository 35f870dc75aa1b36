"""An undamaged log is never classified as damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import RecoveredState
    from quorate.sim.views import NodeView


class SoundDisksAreFoundSound(Invariant):
    """A log that nothing has harmed is not taken for a damaged one, however its process ended.

    Harm is what rotted and has not been written over, until a recovery has dealt with it.

    Sources: rules 12 to 14. A healing voter may not campaign: three that lost power at once would
    be a quorum without a leader.
    """

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        if recovered.remembered_end is not None and not node.was_harmed:
            raise Violation(
                f"node {node.node_id} takes its log up to {recovered.end} for damaged, once "
                f"{recovered.remembered_end}, and nothing has harmed it"
            )
