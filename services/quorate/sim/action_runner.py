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

# In the place of a node's id: whichever leads when it is done.
LEADER: Final = 0
SHUTDOWN_MS: Final = Millis(3000)


class Deed(Protocol):
    """One thing that is done to a world; its fields are plain values."""

    def do(self, stage: Stage) -> ReplyToken | None:
        """Do it now; of a question the token that its answer will have in `World.answers`."""
        ...


class DoneDeed(NamedTuple):
    """A deed, and when it was done."""

    at_us: int
    deed: Deed


class Stage:
    """One world, for all who do something to it, until faults stop."""

    def __init__(self, world: World, *, grows: bool = False) -> None:
        """In a world that `grows` somebody asks for more voters, beside what joins by itself."""
        self.world = world
        self.sparing = Sparing(world, grows=grows)
        self.clients = Clients(world)
        self.pods = Pods(world, self.ask_to_stop)
        self.done: list[DoneDeed] = []
        self.is_over = False
        # How a process dies whose death was decided on before.
        self.deaths: dict[NodeId, Callable[[], None]] = {}
        self._stopping: dict[NodeId, int] = {}

    def do(self, deed: Deed) -> ReplyToken | None:
        """Do it now, unless faults are over."""
        if self.is_over:
            return None
        self.remember(deed)
        return deed.do(self)

    def remember(self, deed: Deed) -> None:
        """It happens just now."""
        self.done.append(DoneDeed(self.world.now_us, deed))

    def remember_death(self, deed: Deed) -> None:
        """It strikes just now. Its steps count from the beginning of this instant."""
        now_us, place = self.world.now_us, len(self.done)
        while place and self.done[place - 1].at_us == now_us:
            place -= 1
        self.done.insert(place, DoneDeed(now_us, deed))

    def end(self) -> None:
        """Faults stop: the network heals, disks are repaired, everything runs again."""
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
                # A stop under way would end the process, and what it serves, later.
                node.kill()
            node.start()
            if node.status is Status.RUNNING:
                node.deliver(StateMachineProgress(ready=True))

    # --- what deeds are made of -------------------------------------------------------------------

    def find(self, who: int) -> SimulatedNode | None:
        """The node of that id, or the leader; None where there is none."""
        return self.world.leader() if who == LEADER else self.world.nodes.get(NodeId(who))

    def find_running(self, who: int) -> SimulatedNode | None:
        """The same of those whose process runs."""
        node = self.find(who)
        return node if node is not None and node.status is Status.RUNNING else None

    def start_later(self, node: SimulatedNode, delay_us: int) -> None:
        """The keeper of a process starts another one."""
        self.world.schedule(0 if self.is_over else delay_us, node.start)

    def ask_to_stop(self, node: SimulatedNode) -> None:
        """It has its time to hand over, and is started again when it has ended."""
        incarnation = self._stopping[node.node_id] = node.incarnation
        if node.status is Status.RUNNING:
            node.process.shut_down(SHUTDOWN_MS)

        def insist() -> None:
            if node.incarnation == incarnation:
                self.world.endings.stopped(node)

        self.world.schedule(SHUTDOWN_MS * 2000, insist)
