"""Scheduled crashes of processes, and the callbacks for process exits.

After an exit, the process supervisor decides about the node (`sim/engine/process_supervisor.py`).
In a cluster without one the node stays down.
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
    """A scheduled crash: the number of steps left, each an effect or a disk call.

    `counted` is the number of steps at the time `at_us`, which is the current time if it fires.
    """

    steps: int
    counted: int = 0
    at_us: int = -1

    def fires(self, now_us: int) -> bool:
        """Count one step; True if the process crashes before it."""
        if now_us != self.at_us:
            self.at_us, self.counted = now_us, 0
        self.counted += 1
        self.steps -= 1
        return self.steps <= 0


class ProcessExits:
    """The scheduled crashes and the exits of all processes of one cluster."""

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
        """Schedule a crash of a node's process before its `steps`-th step from now."""
        doom = self._dooms[node.node_id] = ScheduledCrash(steps)
        return doom

    def should_crash(self, node: NodeView) -> bool:
        """Count one effect or disk call; True if the process crashes before it."""
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
        """Cancel all scheduled crashes."""
        self._dooms.clear()


def _die(node: SimulatedNode, scheduled_crash: ScheduledCrash) -> None:
    """Kill the process without a restart."""
    del scheduled_crash
    node.kill()


def _nobody_mends(node: SimulatedNode, error: Exception) -> None:
    """Leave a refused directory as it is."""
    del node, error
