"""Makes the faults of the seed's mix happen, and takes them all back for the healing phase.

What no quorum could survive is left out: damage to more than a minority of any voter set that may
be in force; who has a new address that the set does not know yet counts as damaged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from quorate.raft.api import ShutdownRequested, StateMachineProgress
from quorate.records.ids import DirectoryId, Millis
from quorate.sim.churn import Churn
from quorate.sim.configuring import is_lost
from quorate.sim.node import SimulatedNode, Status
from quorate.sim.quorum import replace_disk
from quorate.sim.scaling import Scaling
from quorate.sim.storage import rottable
from quorate.sim.strangers import lie_to, take_over
from quorate.sim.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.records.ids import NodeId
    from quorate.sim.world import World

SHUTDOWN_MS = Millis(3000)


class Chaos:
    """The faults of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.churn = Churn(world)
        self.turns = Turns(world, self.ask_to_stop)
        self.scaling = Scaling(world, self.churn, self.ask_to_stop)
        self.is_over = False
        self._stopping: dict[NodeId, int] = {}
        world.when_process_dies = self.process_died
        world.when_process_stops = self.process_stopped

    def begin(self) -> None:
        options = self.world.options
        self._repeat(options.partition_every_ms, self.partition)
        self._repeat(options.kill_every_ms, self.kill)
        self._repeat(options.power_every_ms, self.power_off)
        self._repeat(options.blackout_every_ms, self.black_out)
        self._repeat(options.pause_every_ms, self.pause)
        self._repeat(options.rot_every_ms, self.rot)
        self._repeat(options.disk_fault_every_ms, self.break_disk)
        self._repeat(options.hang_every_ms, self.hang_disk)
        self._repeat(options.wipe_every_ms, self.wipe)
        self._repeat(options.voters_every_ms, self.churn.change_voters)
        self._repeat(options.shutdown_every_ms, self.shut_down)
        self._repeat(options.unready_every_ms, self.unready)
        self._repeat(options.move_every_ms, self.move)
        self._repeat(options.hand_over_every_ms, self.churn.hand_over)
        self._repeat(options.strangers_every_ms, self.meet_strangers)
        self._repeat(options.turns_every_ms, self.turns.begin)
        if options.auto_join:
            self._repeat(options.scale_every_ms, self.scaling.begin)
        if not options.kraft_version:
            self._repeat(options.upgrade_every_ms, self.churn.upgrade)
        self._draw_death()

    def end(self) -> None:
        """Faults stop: the network heals, disks are repaired, everything runs again."""
        self.is_over = True
        self.world.remark("faults stop")
        self.world.calm_down()
        for node in self.world.nodes.values():
            node.disk_fault = None
            if node.status is Status.FAILED:
                node.power_off()
            if node.status is Status.RUNNING:
                node.host.release()
            if node.is_paused:
                node.resume()
            is_stopping = self._stopping.get(node.node_id) == node.incarnation
            if node.is_rotten or is_stopping or is_lost(self.world, node):
                # A stop under way would end the process, and what it serves, later.
                node.kill()
            node.start()
            if node.status is Status.RUNNING:
                node.deliver(StateMachineProgress(ready=True))

    # --- draws ------------------------------------------------------------------------------------

    def _repeat(self, every_ms: int, action: Callable[[], None]) -> None:
        if not every_ms:
            return

        def again() -> None:
            if not self.is_over:
                action()
                self.world.schedule(self._exponential(every_ms * 1000), again)

        self.world.schedule(self._exponential(every_ms * 1000), again)

    def _exponential(self, mean: int) -> int:
        return int(-math.log(1.0 - self.world.random.random()) * mean)

    def _pick(self, nodes: list[SimulatedNode]) -> SimulatedNode | None:
        return nodes[int(self.world.random.random() * len(nodes))] if nodes else None

    def _pick_running(self) -> SimulatedNode | None:
        """A leader half of the time: that is where faults hurt."""
        leader = self.world.leader()
        if leader is not None and self.world.random.random() < 0.5:
            return leader
        return self._pick(self.world.running())

    def _draw_death(self) -> None:
        mean = self.world.options.crash_every_effects
        self.world.ticks_to_death = 1 + self._exponential(mean) if mean else None

    def _restart_later(self, node: SimulatedNode) -> None:
        delay = self._exponential(self.world.options.restart_ms * 1000)

        self.world.schedule(0 if self.is_over else delay, node.start)

    # --- network ----------------------------------------------------------------------------------

    def partition(self) -> None:
        shapes = self.world.options.partition_shapes
        shape = shapes[int(self.world.random.random() * len(shapes))]
        cut = self.world.network.split(shape, list(self.world.nodes))
        self.world.remark(f"partition: {cut}")
        duration = self._exponential(self.world.options.partition_ms * 1000)
        self.world.schedule(duration, self._heal_network)

    def meet_strangers(self) -> None:
        """Somebody lies, or an address belongs to another cluster for a while."""
        node = self._pick(list(self.world.nodes.values()))
        if node is None:
            return
        if self.world.random.random() < 0.5:
            take_over(self.world, node)
        elif node.is_listening:
            lie_to(self.world, node)

    def _heal_network(self) -> None:
        if self.world.network.blocked and not self.is_over:
            self.world.remark("the network heals")
            self.world.network.heal()

    # --- processes --------------------------------------------------------------------------------

    def process_died(self, node: SimulatedNode) -> None:
        """A process died between two effects, or two calls to its disk."""
        self._draw_death()
        if self.world.random.random() < 0.5:
            self.world.remark(f"node {node.node_id} dies")
            node.kill()
        else:
            self.world.remark(f"node {node.node_id} loses power")
            node.power_off()
        self._restart_later(node)

    def process_stopped(self, node: SimulatedNode) -> None:
        """A process ended by itself; whoever keeps it running starts another."""
        node.kill()
        self._restart_later(node)

    def kill(self) -> None:
        node = self._pick_running()
        if node is not None:
            self.world.remark(f"node {node.node_id} is killed")
            node.kill()
            self._restart_later(node)

    def power_off(self) -> None:
        node = self._pick_running()
        if node is not None:
            self.world.remark(f"node {node.node_id} loses power")
            node.power_off()
            self._restart_later(node)

    def black_out(self) -> None:
        """All machines lose power at once."""
        self.world.remark("all nodes lose power")
        for node in self.world.nodes.values():
            node.power_off()
            self._restart_later(node)

    def pause(self) -> None:
        node = self._pick_running()
        if node is None or node.is_paused:
            return
        self.world.remark(f"node {node.node_id} is paused")
        node.pause()
        incarnation = node.incarnation

        def resume() -> None:
            if node.incarnation == incarnation and node.is_paused:
                self.world.remark(f"node {node.node_id} goes on")
                node.resume()

        self.world.schedule(self._exponential(self.world.options.pause_ms * 1000), resume)

    def shut_down(self) -> None:
        """A graceful stop: the process hands over, then ends."""
        node = self._pick_running()
        if node is not None:
            self.world.remark(f"node {node.node_id} is asked to stop")
            self.ask_to_stop(node)

    def ask_to_stop(self, node: SimulatedNode) -> None:
        """It has its time, and is started again when it has ended."""
        incarnation = self._stopping[node.node_id] = node.incarnation
        node.deliver(ShutdownRequested(SHUTDOWN_MS))

        def insist() -> None:
            if node.incarnation == incarnation:
                self.process_stopped(node)

        self.world.schedule(SHUTDOWN_MS * 2000, insist)

    def unready(self) -> None:
        """A state machine falls behind, and catches up later (rule 11)."""
        node = self._pick_running()
        if node is None:
            return
        incarnation = node.incarnation
        node.deliver(StateMachineProgress(ready=False))

        def ready() -> None:
            if node.incarnation == incarnation:
                node.deliver(StateMachineProgress(ready=True))

        self.world.schedule(self._exponential(3_000_000), ready)

    # --- disks ------------------------------------------------------------------------------------

    def break_disk(self) -> None:
        """The disk is full or fails its flushes, until somebody replaces the machine."""
        node = self._pick_running()
        if node is None:
            return
        node.disk_fault = "full" if self.world.random.random() < 0.5 else "failing"
        self.world.remark(f"the disk of node {node.node_id} is {node.disk_fault}")

        def repair() -> None:
            if not self.is_over and node.disk_fault is not None:
                node.disk_fault = None
                node.power_off()
                node.start()

        self.world.schedule(self._exponential(4_000_000), repair)

    def hang_disk(self) -> None:
        """Flushes do not return for a while; what was to be flushed is not lost by that."""
        node = self._pick_running()
        if node is None or node.host.is_hanging:
            return
        self.world.remark(f"the disk of node {node.node_id} hangs")
        host = node.host
        host.hang()

        def release() -> None:
            if node.host is host and host.is_hanging:
                self.world.remark(f"the disk of node {node.node_id} goes on")
                host.release()

        self.world.schedule(self._exponential(self.world.options.hang_ms * 1000), release)

    def rot(self) -> None:
        """A bit flips in the flushed part of a log, or in a snapshot, under a process or without.

        Rot late in the log is the likelier to hit what only few others have; half of the time the
        leader goes down as well, so that they are needed.
        """
        leader = self.world.leader()
        node = self._pick([n for n in self.world.nodes.values() if n is not leader])
        if node is None or node.status is Status.OFF or not self.churn.can_spare(node):
            return
        if self.world.random.random() < 0.7:
            node.kill()
            self._restart_later(node)
        places = rottable(node.disk)
        size = sum(count for _, count in places)
        if not size:
            return
        draw = self.world.random.random()
        at = int((1 - draw * draw) * size)
        for name, count in places:
            if at < count:
                mask = 1 << int(self.world.random.random() * 8)
                node.rot(name, at, mask)
                self.world.remark(f"node {node.node_id}: byte {at} of {name} rots")
                break
            at -= count
        if leader is not None and self.world.random.random() < 0.5:
            self.world.remark(f"node {leader.node_id} loses power")
            leader.power_off()
            self._restart_later(leader)

    def wipe(self) -> None:
        """A node goes down and gets a new, empty disk, and with it a new directory id.

        Half of the time it is back at once, while its old disk still counts as a living voter.
        """
        node = self._pick(list(self.world.nodes.values()))
        if node is None or not self.churn.can_spare(node):
            return
        self.world.remark(f"node {node.node_id} gets an empty disk")
        replace_disk(node, DirectoryId(self.world.draw_id()))
        if self.world.random.random() < 0.5:
            node.start()
        else:
            self._restart_later(node)

    # --- addresses --------------------------------------------------------------------------------

    def move(self) -> None:
        """Processes end and start again at other addresses, which only bootstrap names know."""
        options = self.world.options
        movers = [n for n in self.world.nodes.values() if self.churn.may_move(n)]
        draw = self.world.random.random
        is_many = options.has_bootstrap_names and draw() < options.moves_together
        if is_many:
            movers = [node for node in movers if draw() < 0.6]
        else:
            node = self._pick(movers)
            movers = [] if node is None else [node]
        for node in movers:
            node.kill()
            self.world.move(node)
            self.world.remark(f"node {node.node_id} moves to {node.endpoints[0]}")
            self._restart_later(node)
