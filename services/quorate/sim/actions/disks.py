"""Disk faults: full, failing, hanging, bit rot, replacement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.ids import DirectoryId
from quorate.records.value_types import keyword_value_type
from quorate.sim.engine.disk import Survival
from quorate.sim.engine.event_loop import MILLION
from quorate.sim.engine.machine import FAULTS
from quorate.sim.engine.node import Status
from quorate.sim.engine.quorum_setup import replace_disk
from quorate.sim.engine.storage import corruptible_files

if TYPE_CHECKING:
    from quorate.sim.action_runner import Action, ActionRunner


def _check_fault(fault: str) -> None:
    if fault not in FAULTS:
        raise ValueError(f"fault {fault!r}: one of {', '.join(FAULTS)} is needed")


@keyword_value_type
class BreakDisk:
    """A disk is full or fails until the machine is restarted after `for_us`.

    `survival` and the random stream of `salt` then decide which unflushed writes survive.
    """

    who: int
    fault: str
    for_us: int
    survival: Survival = Survival.NOTHING
    salt: int = 0

    def __post_init__(self) -> None:
        _check_fault(self.fault)

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is None:
            return
        node.disk_fault = self.fault
        action_runner.cluster.log(f"the disk of node {node.node_id} is {node.disk_fault}")

        def repair() -> None:
            if not action_runner.is_over and node.disk_fault is not None:
                node.disk_fault = None
                node.power_off(self.survival, self.salt)
                node.start()

        action_runner.cluster.schedule(self.for_us, repair)


@keyword_value_type
class FailDiskCalls:
    """Disk calls fail for a while and then succeed again: nothing is replaced or lost.

    A process that has failed by then is restarted.
    """

    who: int
    fault: str
    for_us: int

    def __post_init__(self) -> None:
        _check_fault(self.fault)

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is None or node.disk_fault is not None:
            return
        node.disk_fault = self.fault
        action_runner.cluster.log(f"the disk of node {node.node_id} is {node.disk_fault}")

        def end() -> None:
            if action_runner.is_over or node.disk_fault != self.fault:
                return
            action_runner.cluster.log(f"the disk of node {node.node_id} is no more {self.fault}")
            node.disk_fault = None
            if node.status is Status.FAILED:
                node.kill()
                node.start()

        action_runner.cluster.schedule(self.for_us, end)


@keyword_value_type
class StallDisk:
    """The disk stalls: flushes do not return for a while. No write is lost."""

    who: int
    for_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.find_running(self.who)
        if node is None or node.host.is_hanging:
            return
        world, host = action_runner.cluster, node.host
        world.log(f"the disk of node {node.node_id} hangs")
        host.stall()

        def release() -> None:
            if node.host is host and host.is_hanging:
                world.log(f"the disk of node {node.node_id} goes on")
                host.release()

        world.schedule(self.for_us, release)


@keyword_value_type
class FlipLogBit:
    """A bit flips in the flushed part of a log or in a snapshot; the node may run or be stopped.

    `at_ppm` is its position within all bytes in which recovery must detect damage.
    """

    who: int
    at_ppm: int
    bit: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.resolve(self.who)
        if node is None or not action_runner.survivability.can_lose_disk(node):
            return
        places = corruptible_files(node.disk)
        at = sum(count for _, count in places) * self.at_ppm // MILLION
        for name, count in places:
            if at < count:
                node.rot(name, at, 1 << self.bit % 8)
                action_runner.cluster.log(f"node {node.node_id}: byte {at} of {name} rots")
                return
            at -= count


@keyword_value_type
class ReplaceDisk:
    """A node stops and gets a new, empty disk and with it a new directory id."""

    who: int
    down_us: int

    def run(self, action_runner: ActionRunner) -> None:
        node = action_runner.resolve(self.who)
        if node is None or not action_runner.survivability.can_lose_disk(node):
            return
        action_runner.cluster.log(f"node {node.node_id} gets an empty disk")
        replace_disk(
            node, DirectoryId(action_runner.cluster.random_streams.directory_id(node.node_id))
        )
        if self.down_us:
            action_runner.start_later(node, self.down_us)
        else:
            node.start()


KINDS: Final[dict[str, type[Action]]] = {
    "break-disk": BreakDisk,
    "fail": FailDiskCalls,
    "hang": StallDisk,
    "rot": FlipLogBit,
    "wipe": ReplaceDisk,
}
