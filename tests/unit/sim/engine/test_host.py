"""The machine below one life of a simulated process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from quorate.server.disk.executor import DiskCallTracker
from quorate.server.disk.log_flusher import SYNCING_END
from quorate.sim.cluster import Cluster
from quorate.sim.engine.host import QUICK_US
from quorate.sim.engine.process import Process
from quorate.sim.engine.quorum_setup import build
from quorate.sim.sim_options import DiskOptions, WorldOptions

if TYPE_CHECKING:
    from quorate.sim.engine.node import SimulatedNode

FSYNC_US = 1000


@pytest.fixture
def cluster() -> Cluster:
    """One of an only voter: it leads, and nothing happens but what a test asks for."""
    world = Cluster(1, WorldOptions(voters=1, disks=DiskOptions(fsync_us=FSYNC_US)))
    build(world)
    world.run(5000)
    return world


@pytest.fixture
def node(cluster: Cluster) -> SimulatedNode:
    return next(iter(cluster.nodes.values()))


def calls_of(node: SimulatedNode, name: str, *names: str) -> list[tuple[str, int]]:
    """Has calls made in a thread of that name: each with when it was, counted from now."""
    world = node.world
    made: list[tuple[str, int]] = []
    began_us = world.now_us
    queue = node.host.disk_queue(name, DiskCallTracker(node.host.work_s))

    def note(what: str) -> None:
        made.append((what, world.now_us - began_us))

    def ask() -> None:
        for what in names:
            queue.run(what, partial(note, what))

    node.host.loop.run(ask)
    return made


def test_a_call_is_made_at_the_end_of_the_time_that_it_takes(
    cluster: Cluster, node: SimulatedNode
) -> None:
    made = calls_of(node, "disk", "one", "two")
    assert made == []
    cluster.run(cluster.now_ms + 10)
    assert made == [("one", FSYNC_US), ("two", 2 * FSYNC_US)]


def test_reads_are_quick(cluster: Cluster, node: SimulatedNode) -> None:
    made = calls_of(node, "read", "one")
    cluster.run(cluster.now_ms + 10)
    assert made == [("one", QUICK_US)]


def test_no_call_returns_while_the_disk_hangs(cluster: Cluster, node: SimulatedNode) -> None:
    made = calls_of(node, "disk", "one")
    node.host.stall()
    cluster.run(cluster.now_ms + 100)
    assert made == []
    node.host.release()
    assert [what for what, _ in made] == ["one"]


def test_a_paused_process_hears_of_its_disk_when_it_goes_on(
    cluster: Cluster, node: SimulatedNode
) -> None:
    made = calls_of(node, "disk", "one")
    node.pause()
    cluster.run(cluster.now_ms + 100)
    assert made == []
    node.resume()
    assert [what for what, _ in made] == ["one"]


def test_the_calls_of_a_process_end_with_it(cluster: Cluster, node: SimulatedNode) -> None:
    made = calls_of(node, "disk", "one")
    node.kill()
    cluster.run(cluster.now_ms + 100)
    assert made == []


def test_a_disk_that_goes_on_does_nothing_for_a_process_that_is_gone(
    cluster: Cluster, node: SimulatedNode
) -> None:
    made = calls_of(node, "disk", "one")
    host = node.host
    host.stall()
    cluster.run(cluster.now_ms + 100)
    node.kill()
    host.release()
    assert made == []


def test_what_a_call_raises_is_what_its_caller_hears(cluster: Cluster, node: SimulatedNode) -> None:
    def fail() -> None:
        raise OSError("no such disk")

    queue = node.host.disk_queue("disk", DiskCallTracker(node.host.work_s))
    future = queue.run("a call", fail)
    cluster.run(cluster.now_ms + 10)
    assert str(future.exception()) == "no such disk"


def test_a_flush_takes_its_time_by_its_own_clock(cluster: Cluster, node: SimulatedNode) -> None:
    times = node.driver.access.flushing.times
    node.application.propose((1,), 10)
    cluster.run(cluster.now_ms + 10)
    assert times.quantile_s(1.0) == pytest.approx(FSYNC_US / 1e6)


def test_no_effect_waits_for_the_flush_of_the_flushed_end(node: SimulatedNode) -> None:
    queue = node.host.disk_queue("disk", DiskCallTracker(node.host.work_s))
    node.host.loop.run(queue.run, SYNCING_END, int)
    assert not queue.is_waited_for
    node.host.loop.run(queue.run, "saving quorum-state", int)
    assert queue.is_waited_for


def test_a_process_may_end_before_it_has_begun(node: SimulatedNode) -> None:
    process = Process(node)
    process.end()
    assert process.host.loop.is_closed()
