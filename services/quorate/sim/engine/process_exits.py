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
    from quorate.sim.engine.event_queue import Actions
    from quorate.sim.views import SeenNode


@dataclass(slots=True)
class Doom:
    """A scheduled crash: the number of steps left, each an effect or a disk call.

    `counted` is the number of steps at the time `at_us`, which is the current time if it fires.
    """

    steps: int
    counted: int = 0
    at_us: int = -1

    def strikes(self, now_us: int) -> bool:
        """Count one step; True if the process crashes before it."""
        if now_us != self.at_us:
            self.at_us, self.counted = now_us, 0
        self.counted += 1
        self.steps -= 1
        return self.steps <= 0


class Endings:
    """The scheduled crashes and the exits of all processes of one cluster."""

    def __init__(self, actions: Actions, nodes: Mapping[NodeId, SimulatedNode]) -> None:
        self.when_dies: Callable[[SimulatedNode, Doom], None] = _die
        self.when_stops: Callable[[SimulatedNode], None] = SimulatedNode.kill
        self.when_runs_short: Callable[[SimulatedNode], None] = SimulatedNode.kill
        self.when_refused: Callable[[SimulatedNode, Exception], None] = _nobody_mends
        self._actions = actions
        self._nodes = nodes
        self._dooms: dict[NodeId, Doom] = {}
        self._struck: dict[NodeId, Doom] = {}

    def doom(self, node: SeenNode, steps: int) -> Doom:
        """Schedule a crash of a node's process before its `steps`-th step from now."""
        doom = self._dooms[node.node_id] = Doom(steps)
        return doom

    def is_time_to_die(self, node: SeenNode) -> bool:
        """Count one effect or disk call; True if the process crashes before it."""
        doom = self._dooms.get(node.node_id)
        if doom is None or not doom.strikes(self._actions.now_us):
            return False
        self._struck[node.node_id] = self._dooms.pop(node.node_id)
        return True

    def died(self, node: SeenNode) -> None:
        self.when_dies(self._nodes[node.node_id], self._struck.pop(node.node_id))

    def stopped(self, node: SeenNode) -> None:
        self.when_stops(self._nodes[node.node_id])

    def ran_short(self, node: SeenNode) -> None:
        self.when_runs_short(self._nodes[node.node_id])

    def refused(self, node: SeenNode, error: Exception) -> None:
        self.when_refused(self._nodes[node.node_id], error)

    def calm_down(self) -> None:
        """Cancel all scheduled crashes."""
        self._dooms.clear()


def _die(node: SimulatedNode, doom: Doom) -> None:
    """Kill the process without a restart."""
    del doom
    node.kill()


def _nobody_mends(node: SimulatedNode, error: Exception) -> None:
    """Leave a refused directory as it is."""
    del node, error
