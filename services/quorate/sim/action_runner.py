"""Executes actions on a cluster and records them with their time.

The fault scheduler draws the actions. An action that no quorum could survive is not executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from quorate.raft.api import StateMachineProgress
from quorate.records.ids import Millis, NodeId
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.engine.node_config import is_lost
from quorate.sim.faults.pod_scaling import PodScaling
from quorate.sim.faults.survivability import Survivability
from quorate.sim.workload.clients import Clients

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.records.ids import ReplyToken
    from quorate.sim.cluster import Cluster

# In place of a node id: the leader when the action is executed.
LEADER: Final = 0
SHUTDOWN_MS: Final = Millis(3000)


class Action(Protocol):
    """One action on a cluster; its fields are plain values."""

    def run(self, action_runner: ActionRunner) -> ReplyToken | None:
        """Execute it now; a request returns the token of its response in `Cluster.answers`."""
        ...


class TimedAction(NamedTuple):
    """An action and the time when it was executed."""

    at_us: int
    action: Action


class ActionRunner:
    """Executes the actions on one cluster, until faults stop."""

    def __init__(self, cluster: Cluster, *, grows: bool = False) -> None:
        """With `grows`, voters are added by request, in addition to auto-join."""
        self.cluster = cluster
        self.survivability = Survivability(cluster, grows=grows)
        self.clients = Clients(cluster)
        self.pod_scaling = PodScaling(cluster, self.request_stop)
        self.done: list[TimedAction] = []
        self.is_over = False
        # Per node: the crash that its scheduled `CrashAtStep` will cause.
        self.deaths: dict[NodeId, Callable[[], None]] = {}
        self._stopping: dict[NodeId, int] = {}

    def run(self, action: Action) -> ReplyToken | None:
        """Execute it now, unless faults have stopped."""
        if self.is_over:
            return None
        self.record(action)
        return action.run(self)

    def record(self, action: Action) -> None:
        """Record an action that happens now."""
        self.done.append(TimedAction(self.cluster.now_us, action))

    def record_crash(self, action: Action) -> None:
        """Record a crash that happens now, before the other actions of the same microsecond.

        A replayed crash counts its steps from there.
        """
        now_us, place = self.cluster.now_us, len(self.done)
        while place and self.done[place - 1].at_us == now_us:
            place -= 1
        self.done.insert(place, TimedAction(now_us, action))

    def end(self) -> None:
        """Stop all faults: reconnect the network, repair the disks and run every process."""
        self.is_over = True
        world = self.cluster
        world.log("faults stop")
        world.stop_faults()
        for node in world.nodes.values():
            node.disk_fault = None
            if node.status is Status.FAILED:
                node.power_off()
            if node.status is Status.RUNNING:
                node.host.release()
            if node.is_paused:
                node.resume()
            is_stopping = self._stopping.get(node.node_id) == node.incarnation
            is_spoiled = node.is_corrupt or bool(node.file_tampering.paths)
            if is_spoiled or is_stopping or is_lost(world, node):
                # A stop in progress would otherwise end it later, during the liveness check.
                node.kill()
            node.start()
            if node.status is Status.RUNNING:
                node.deliver(StateMachineProgress(ready=True))

    # --- parts of actions -------------------------------------------------------------------------

    def resolve(self, who: int) -> SimulatedNode | None:
        """The node of that id, or the leader; None if it does not exist."""
        return self.cluster.leader() if who == LEADER else self.cluster.nodes.get(NodeId(who))

    def find_running(self, who: int) -> SimulatedNode | None:
        """The same, or None if its process does not run."""
        node = self.resolve(who)
        return node if node is not None and node.status is Status.RUNNING else None

    def start_later(self, node: SimulatedNode, delay_us: int) -> None:
        """Start another process after the delay, as the process supervisor does."""
        self.cluster.schedule(0 if self.is_over else delay_us, node.start)

    def request_stop(self, node: SimulatedNode) -> None:
        """Stop the process gracefully, so that it can transfer leadership, and restart the node."""
        incarnation = self._stopping[node.node_id] = node.incarnation
        if node.status is Status.RUNNING:
            node.process.shut_down(SHUTDOWN_MS)

        def insist() -> None:
            if node.incarnation == incarnation:
                self.cluster.process_exits.stopped(node)

        self.cluster.schedule(SHUTDOWN_MS * 2000, insist)
