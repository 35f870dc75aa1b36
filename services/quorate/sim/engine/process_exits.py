"""Injected process deaths and the callbacks for process exits.

The process supervisor decides about the node after an exit (`sim/engine/process_supervisor.py`); in
a cluster without one the node stays down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.sim.engine.node import SimulatedNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quorate.records.ids import NodeId
    from quorate.sim.engine.event_queue import EventQueue
    from quorate.sim.views import NodeView


@dataclass(slots=True)
class ScheduledCrash:
    """A scheduled crash: the number of steps left, each an effect or a call to the disk.

    `counted` are those of the instant `at_us`, which is the present if it fires.
    """

    steps: int
    counted: int = 0
    at_us: int = -1

    def fires(self, now_us: int) -> bool:
        """Count one step; whether it is the one before which the process dies."""
        if now_us != self.at_us:
            self.at_us, self.counted = now_us, 0
        self.counted += 1
        self.steps -= 1
        return self.steps <= 0


class ProcessExits:
    """The ends of all processes of one world."""

    def __init__(self, event_queue: EventQueue, nodes: Mapping[NodeId, SimulatedNode]) -> None:
        self.when_dies: Callable[[SimulatedNode, ScheduledCrash], None] = _die
        self.when_stops: Callable[[SimulatedNode], None] = SimulatedNode.kill
        self.when_runs_short: Callable[[SimulatedNode], None] = SimulatedNode.kill
        self.when_refused: Callable[[SimulatedNode, Exception], None] = _nobody_mends
        self._event_queue = event_queue
        self._nodes = nodes
        self._dooms: dict[NodeId, ScheduledCrash] = {}
        self._struck: dict[NodeId, ScheduledCrash] = {}

    def schedule_crash(self, node: NodeView, steps: int) -> ScheduledCrash:
        """Have a process of that node die before its so many-th step from now on."""
        doom = self._dooms[node.node_id] = ScheduledCrash(steps)
        return doom

    def should_crash(self, node: NodeView) -> bool:
        """Count one effect or one call to a disk; True for the one that a process dies before."""
        doom = self._dooms.get(node.node_id)
        if doom is None or not doom.fires(self._event_queue.now_us):
            return False
        self._struck[node.node_id] = self._dooms.pop(node.node_id)
        return True

    def died(self, node: NodeView) -> None:
        self.when_dies(self._nodes[node.node_id], self._struck.pop(node.node_id))

    def stopped(self, node: NodeView) -> None:
        self.when_stops(self._nodes[node.node_id])

    def on_resource_shortage(self, node: NodeView) -> None:
        self.when_runs_short(self._nodes[node.node_id])

    def refused(self, node: NodeView, error: Exception) -> None:
        self.when_refused(self._nodes[node.node_id], error)

    def calm_down(self) -> None:
        """Nobody is doomed any more."""
        self._dooms.clear()


def _die(node: SimulatedNode, scheduled_crash: ScheduledCrash) -> None:
    """Nobody starts it again."""
    del scheduled_crash
    node.kill()


def _nobody_mends(node: SimulatedNode, error: Exception) -> None:
    """A directory that is refused stays as it is."""
    del node, error
