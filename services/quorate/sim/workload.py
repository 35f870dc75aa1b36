"""Clients: they write, read what is current at the leader, and read what there is at any node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Offset
from quorate.sim.node import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.node import SimulatedNode
    from quorate.sim.world import World


class Workload:
    """Keeps clients busy until it is told to stop. Operations are numbered; none is retried."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.operations = 0
        self.is_stopped = False
        self._seen = Offset(0)

    def begin(self) -> None:
        options = self.world.options
        self._repeat(options.write_every_ms, self.write)
        self._repeat(options.read_every_ms, self.read_current)
        self._repeat(options.follower_read_every_ms, self.read_any)

    def _repeat(self, every_ms: int, action: Callable[[], object]) -> None:
        def again() -> None:
            if not self.is_stopped:
                action()
                self.world.schedule(self._interval(every_ms), again)

        self.world.schedule(self._interval(every_ms), again)

    def _interval(self, every_ms: int) -> int:
        return int(self.world.random.random() * 2000 * every_ms)

    def _believed_leaders(self) -> list[SimulatedNode]:
        """Every node that takes itself for leader: during a partition there may be two."""
        nodes = []
        for node in self.world.nodes.values():
            is_leader = node.progress is not None and node.progress.is_leader
            if node.status is Status.RUNNING and is_leader:
                nodes.append(node)
        return nodes

    def _pick(self, nodes: list[SimulatedNode]) -> SimulatedNode:
        return nodes[int(self.world.random.random() * len(nodes))]

    def write(self) -> int | None:
        """Propose one batch; the number of its last operation, or None where nobody takes it."""
        leaders = self._believed_leaders()
        if not leaders:
            return None
        options = self.world.options
        count = 1 + int(self.world.random.random() * options.records_max)
        operations = tuple(range(self.operations, self.operations + count))
        self.operations += count
        taken = self._pick(leaders).application.propose(operations, options.record_bytes)
        return operations[-1] if taken else None

    def read_current(self) -> bool:
        """Begin a read that must be current; False where nobody takes it."""
        leaders = self._believed_leaders()
        if leaders:
            self._pick(leaders).application.read_current()
        return bool(leaders)

    def read_any(self) -> None:
        """Read anywhere; the client insists on what it has seen before."""
        nodes = [n for n in self.world.running() if not n.is_paused]
        if nodes:
            self._pick(nodes).application.read_any(self._seen, self._saw)

    def _saw(self, offset: Offset) -> None:
        self._seen = max(self._seen, offset)
