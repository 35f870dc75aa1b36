"""Pods that are scaled down and up again before they have stopped.

The voter is removed, as its sidecar would request. Later its process is stopped, and then restarted
on the same disk. A process that reports its removal is stopped in the end, also after faults have
stopped: an operator reads that in its status warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.membership.auto_join import was_removed_while_running
from quorate.sim.engine.node import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.cluster import Cluster
    from quorate.sim.engine.node import SimulatedNode

LOOK_US: Final = 100_000
# How long a process may continue after its voter was removed, in fetch timeouts. A node that
# requested to join immediately would do so in the first half of this time.
LINGERS: Final = 2


class PodScaling:
    """Watches the pods of one cluster."""

    def __init__(self, cluster: Cluster, stop: Callable[[SimulatedNode], None]) -> None:
        """`stop` requests a graceful stop of a process and its restart."""
        self.cluster = cluster
        self._stop = stop
        self._ending: dict[int, int] = {}
        self._looks = False

    def start_watching(self) -> None:
        """Start to watch for processes whose voter was removed, and stop these."""
        if not self._looks:
            self._looks = True
            self._look()

    def _look(self) -> None:
        for node in self.cluster.running():
            replica = node.core.replica
            is_known = self._ending.get(node.node_id) == node.incarnation
            is_unwanted = node.key in replica.voters.decommissioned
            if was_removed_while_running(replica) and not is_unwanted and not is_known:
                self._ending[node.node_id] = node.incarnation
                self._end(node)
        self.cluster.schedule(LOOK_US, self._look)

    def _end(self, node: SimulatedNode) -> None:
        incarnation = node.incarnation

        def stop() -> None:
            if node.incarnation != incarnation or node.status is not Status.RUNNING:
                return
            if was_removed_while_running(node.core.replica):
                self.cluster.log(f"node {node.node_id}, which was scaled away, is stopped")
                self._stop(node)
            else:
                # It is a voter: its removal was not committed, or an operator has added it again.
                self._ending.pop(node.node_id, None)

        linger_us = LINGERS * self.cluster.options.timeouts.fetch_timeout_ms * 1000
        draw = self.cluster.random_streams.stream("pods", node.node_id).random()
        self.cluster.schedule(int(draw * linger_us), stop)
