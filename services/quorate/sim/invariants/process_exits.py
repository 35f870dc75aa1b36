"""A process exits on its own, or refuses to start, only for a real cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.server.driver.raft_driver import ExitReason
from quorate.sim.checkers.oracle import Violation
from quorate.sim.engine.machine import FAULTS, ROTTEN, SHORT
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.sim.views import NodeView

# The faults that justify each kind of exit.
_CAUSES: Final = {
    ExitReason.DAMAGED: frozenset({ROTTEN}),
    ExitReason.DISK_FAILED: frozenset(FAULTS) - {SHORT},
    ExitReason.SHORT: frozenset({SHORT}),
}


class ExitsHaveCauses(Invariant):
    """A process that exits or does not start has met the fault that it reports as the reason.

    Damage requires bit rot since its start or found then, a failed disk a failed call, resource
    exhaustion a lack of descriptors, and a stop a request to stop. Sources: rules `disk_fail_stop`,
    `stopping_replica` and `disk_error_classes`.
    """

    def ended(self, node: NodeView, exit_reason: ExitReason, message: str) -> None:
        match exit_reason:
            case ExitReason.STOPPED | ExitReason.LATE:
                has_cause = node.is_stopping
            case ExitReason.CRASHED:
                # The error that crashed it is raised unchanged.
                has_cause = True
            case _:
                has_cause = not _CAUSES.get(exit_reason, frozenset()).isdisjoint(node.faults_met)
        if not has_cause:
            raise Violation(f"node {node.node_id} ends without a cause: {message}")

    def refused(self, node: NodeView, error: Exception) -> None:
        if not node.faults_met:
            raise Violation(f"node {node.node_id} does not start, and nothing harmed it: {error}")
