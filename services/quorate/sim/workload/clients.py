"""Simulated clients: writes and reads checked against earlier answers.

Operations are numbered in the order of their requests; none is retried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Offset
from quorate.sim.engine.node import Status

if TYPE_CHECKING:
    from quorate.sim.cluster import Cluster
    from quorate.sim.engine.node import SimulatedNode


class Clients:
    """All clients of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.operations = 0
        self._seen = Offset(0)

    def believed_leaders(self) -> list[SimulatedNode]:
        """Every running node that believes it leads: during a partition there may be two."""
        nodes = []
        for node in self.cluster.nodes.values():
            is_leader = node.progress is not None and node.progress.is_leader
            if node.status is Status.RUNNING and is_leader:
                nodes.append(node)
        return nodes

    def write(self, node: SimulatedNode, count: int) -> int | None:
        """Propose one batch; returns the number of its last operation, None if rejected."""
        operations = tuple(range(self.operations, self.operations + count))
        self.operations += count
        taken = node.application.propose(operations, self.cluster.options.clients.record_bytes)
        return operations[-1] if taken else None

    def read_current(self, node: SimulatedNode) -> None:
        """Start a linearizable read."""
        node.application.read_current()

    def read_any(self, node: SimulatedNode) -> None:
        """Start a stale read; it must not be older than earlier stale reads."""
        node.application.read_stale(self._seen, self._saw)

    def _saw(self, offset: Offset) -> None:
        self._seen = max(self._seen, offset)
