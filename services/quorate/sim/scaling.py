"""Pods that are scaled away and wanted again before they have ended: what becomes of their voters.

The voter is removed, as its sidecar would ask; some time later its process is stopped, and then it
is started again on the same disk. Whichever process says that it has left is stopped in the end:
whoever looks after a real one reads that in its remarks.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from quorate.raft.joining import has_left
from quorate.raft.messages import RemoveRaftVoterRequest
from quorate.sim.churn import CHANGE_MS
from quorate.sim.configuring import CLUSTER_ID
from quorate.sim.node import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.churn import Churn
    from quorate.sim.node import SimulatedNode
    from quorate.sim.world import World

LOOK_US: Final = 100_000
# Of the fetch timeout: for how long a process may go on after its voter was removed. Whoever asked
# to join at once would ask in the first half of it.
LINGERS: Final = 2


class Scaling:
    """The pods of one world that are scaled away, and come back."""

    def __init__(self, world: World, churn: Churn, stop: Callable[[SimulatedNode], None]) -> None:
        """`stop` asks a process to stop, and has it started again."""
        self.world = world
        self.churn = churn
        self._stop = stop
        # Its own generator: a world without it draws as before.
        self._random = random.Random(world.seed * 2 + 3)
        self._ending: dict[int, int] = {}
        self._looks = False

    def begin(self) -> None:
        """Have one voter removed because its pod goes."""
        leader = self.world.leader()
        if leader is None or leader.is_paused:
            return
        voters = leader.log.voters
        there = [n for n in self.world.running() if any(n.is_voter(v) for v in voters)]
        there = [node for node in there if self.churn.may_lose(leader, node)]
        if not there:
            return
        node = there[int(self._random.random() * len(there))]
        self.world.remark(f"node {node.node_id} is scaled away")
        leader.ask(RemoveRaftVoterRequest(CLUSTER_ID, node.key, CHANGE_MS, scaled_away=True))
        if not self._looks:
            self._looks = True
            self._look()

    def _look(self) -> None:
        for node in self.world.running():
            replica = node.core.replica
            is_known = self._ending.get(node.node_id) == node.incarnation
            is_unwanted = node.key in replica.voters.decommissioned
            if has_left(replica) and not is_unwanted and not is_known:
                self._ending[node.node_id] = node.incarnation
                self._end(node)
        self.world.schedule(LOOK_US, self._look)

    def _end(self, node: SimulatedNode) -> None:
        incarnation = node.incarnation

        def stop() -> None:
            if node.incarnation != incarnation or node.status is not Status.RUNNING:
                return
            if has_left(node.core.replica):
                self.world.remark(f"node {node.node_id}, which was scaled away, is stopped")
                self._stop(node)
            else:
                # It was a voter all along: its removal was not committed, or it was added by hand.
                self._ending.pop(node.node_id, None)

        linger_ms = LINGERS * self.world.options.fetch_timeout_ms
        self.world.schedule(int(self._random.random() * linger_ms * 1000), stop)
