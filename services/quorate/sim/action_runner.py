"""Executes actions on a cluster and records them with their time.

The fault scheduler draws the actions. An action that no quorum could survive is not executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from quorate.raft.api import StateMachineProgress
from quorate.records.ids import Millis, NodeId
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.engine.node_config import is_lost
from quorate.sim.faults.pod_scaling import Pods
from quorate.sim.faults.survivability import Sparing
from quorate.sim.workload.clients import Clients

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.records.ids import ReplyToken
    from quorate.sim.cluster import World

# In place of a node id: the leader when the action is executed.
LEADER: Final = 0
SHUTDOWN_MS: Final = Millis(3000)


class Deed(Protocol):
    """One action on a cluster; its fields are plain values."""

    def do(self, stage: Stage) -> ReplyToken | None:
        """Execute it now; a request returns the token of its response in `World.answers`."""
        ...


class DoneDeed(NamedTuple):
    """An action and the time when it was executed."""

    at_us: int
    deed: Deed


class Stage:
    """Executes the actions on one cluster, until faults stop."""

    def __init__(self, world: World, *, grows: bool = False) -> None:
        """With `grows`, voters are added by request, in addition to auto-join."""
        self.world = world
        self.sparing = Sparing(world, grows=grows)
        self.clients = Clients(world)
        self.pods = Pods(world, self.ask_to_stop)
        self.done: list[DoneDeed] = []
        self.is_over = False
        # Per node: the crash that its scheduled `Die` will cause.
        self.deaths: dict[NodeId, Callable[[], None]] = {}
        self._stopping: dict[NodeId, int] = {}

    def do(self, deed: Deed) -> ReplyToken | None:
        """Execute it now, unless faults have stopped."""
        if self.is_over:
            return None
        self.remember(deed)
        return deed.do(self)

    def remember(self, deed: Deed) -> None:
        """Record an action that happens now."""
        self.done.append(DoneDeed(self.world.now_us, deed))

    def remember_death(self, deed: Deed) -> None:
        """Record a crash that happens now, before the other actions of the same microsecond.

        A replayed crash counts its steps from there.
        """
        now_us, place = self.world.now_us, len(self.done)
        while place and self.done[place - 1].at_us == now_us:
            place -= 1
        self.done.insert(place, DoneDeed(now_us, deed))

    def end(self) -> None:
        """Stop all faults: reconnect the network, repair the disks and run every process."""
        self.is_over = True
        world = self.world
        world.remark("faults stop")
        world.calm_down()
        for node in world.nodes.values():
            node.disk_fault = None
            if node.status is Status.FAILED:
                node.power_off()
            if node.status is Status.RUNNING:
                node.host.release()
            if node.is_paused:
                node.resume()
            is_stopping = self._stopping.get(node.node_id) == node.incarnation
            is_spoiled = node.is_rotten or bool(node.spoiling.paths)
            if is_spoiled or is_stopping or is_lost(world, node):
                # A stop in progress would otherwise end it later, during the liveness check.
                node.kill()
            node.start()
            if node.status is Status.RUNNING:
                node.deliver(StateMachineProgress(ready=True))

    # --- parts of actions -------------------------------------------------------------------------

    def find(self, who: int) -> SimulatedNode | None:
        """The node of that id, or the leader; None if it does not exist."""
        return self.world.leader() if who == LEADER else self.world.nodes.get(NodeId(who))

    def find_running(self, who: int) -> SimulatedNode | None:
        """The same, or None if its process does not run."""
        node = self.find(who)
        return node if node is not None and node.status is Status.RUNNING else None

    def start_later(self, node: SimulatedNode, delay_us: int) -> None:
        """Start another process after the delay, as the process supervisor does."""
        self.world.schedule(0 if self.is_over else delay_us, node.start)

    def ask_to_stop(self, node: SimulatedNode) -> None:
        """Stop the process gracefully, so that it can transfer leadership, and restart the node."""
        incarnation = self._stopping[node.node_id] = node.incarnation
        if node.status is Status.RUNNING:
            node.process.shut_down(SHUTDOWN_MS)

        def insist() -> None:
            if node.incarnation == incarnation:
                self.world.endings.stopped(node)

        self.world.schedule(SHUTDOWN_MS * 2000, insist)
