"""What is done to a world, one deed after another."""

from __future__ import annotations

import pytest

from quorate.records.ids import NodeId
from quorate.sim.deeds.asking import Remove
from quorate.sim.deeds.disks import Rot, Wipe
from quorate.sim.deeds.late import HoldBack, Of
from quorate.sim.deeds.network import Split
from quorate.sim.deeds.processes import Die, Kill, Pause
from quorate.sim.deeds.using import Write
from quorate.sim.healing import is_caught_up
from quorate.sim.keeping import Keeper
from quorate.sim.network import PartitionShape
from quorate.sim.node import SimulatedNode, Status
from quorate.sim.options import Options
from quorate.sim.quorum import build
from quorate.sim.stage import LEADER, Stage
from quorate.sim.world import World

LIMIT_MS = 60_000
SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US


@pytest.fixture
def stage() -> Stage:
    """Three voters that are caught up, and somebody who starts their processes again."""
    world = World(1, Options())
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world))
    stage = Stage(world)
    Keeper(stage).begin()
    return stage


def leader_of(stage: Stage) -> SimulatedNode:
    leader = stage.world.leader()
    assert leader is not None
    return leader


def run(stage: Stage, for_us: int) -> None:
    stage.world.run(stage.world.now_ms + for_us // 1000)


def test_deeds_are_remembered_with_their_moment(stage: Stage) -> None:
    now_us = stage.world.now_us
    stage.do(deed := Kill(who=1, down_us=SECOND_US))
    assert stage.done == [(now_us, deed)]


def test_nothing_is_done_once_faults_have_stopped(stage: Stage) -> None:
    stage.end()
    stage.do(Kill(who=1, down_us=SECOND_US))
    assert len(stage.world.running()) == 3
    assert not stage.done


def test_a_fault_ends_when_its_time_is_over(stage: Stage) -> None:
    node = stage.find(1)
    assert node is not None
    stage.do(Kill(who=1, down_us=SECOND_US))
    assert node.status is Status.STOPPED
    run(stage, 2 * SECOND_US)
    stage.do(Pause(who=1, for_us=SECOND_US))
    assert node.is_paused
    run(stage, 2 * SECOND_US)
    assert not node.is_paused
    stage.do(Split(shape=PartitionShape.ISOLATE, those=(1,), for_us=SECOND_US))
    assert stage.world.network.blocked
    run(stage, 2 * SECOND_US)
    assert not stage.world.network.blocked


def test_a_deed_may_be_about_whoever_leads(stage: Stage) -> None:
    leader = leader_of(stage)
    stage.do(Kill(who=LEADER, down_us=SECOND_US))
    assert leader.status is Status.STOPPED


def test_nobody_is_hurt_who_is_not_there(stage: Stage) -> None:
    stage.do(Kill(who=9, down_us=0))
    stage.do(Split(shape=PartitionShape.LINK, those=(1, 9), for_us=0))
    stage.do(Remove(whom=9))
    assert len(stage.world.running()) == 3
    assert not stage.world.network.blocked


def test_a_process_dies_before_the_step_that_was_named(stage: Stage) -> None:
    leader = leader_of(stage)
    stage.do(Die(who=leader.node_id, step=1, down_us=SECOND_US))
    assert len(stage.world.running()) == 3
    stage.do(Write(count=1, who=leader.node_id))
    run(stage, 100_000)
    assert leader.status is Status.STOPPED
    run(stage, 2 * SECOND_US)
    assert len(stage.world.running()) == 3


def test_damage_stays_within_a_minority(stage: Stage) -> None:
    disks = {node.node_id: node.directory_id for node in stage.world.nodes.values()}
    for who in disks:
        stage.do(Wipe(who=who, down_us=0))
    changed = [n for n in stage.world.nodes.values() if n.directory_id != disks[n.node_id]]
    assert len(changed) == 1
    stage.do(Rot(who=3, at_ppm=500_000, bit=0))
    assert not stage.world.nodes[changed[0].node_id].is_rotten
    assert not any(node.is_rotten for node in stage.world.nodes.values())


def test_a_voter_whose_recovery_was_cut_short_is_damaged(stage: Stage) -> None:
    """It has set the rotten file aside, and whoever looks at its disk sees no rot."""
    node, other = stage.world.nodes[NodeId(3)], stage.world.nodes[NodeId(2)]
    for _ in range(20):
        stage.do(Write(count=3))
        run(stage, SECOND_US)
    stage.do(Kill(who=3, down_us=HOUR_US))
    stage.do(Rot(who=3, at_ppm=0, bit=0))
    assert node.is_rotten
    step = 0
    while node.is_rotten:
        step += 1
        stage.do(Die(who=3, step=step, down_us=HOUR_US))
        node.start()
    assert node.status is Status.STOPPED, "it died on its way"
    assert not node.is_whole
    assert not stage.sparing.can_spare(other)
    node.start()
    assert not node.is_whole, "it heals"


def test_no_change_leaves_a_set_without_a_majority(stage: Stage) -> None:
    leader = leader_of(stage)
    others = [node.node_id for node in stage.world.nodes.values() if node is not leader]
    for who in others:
        stage.do(Kill(who=who, down_us=60 * SECOND_US))
    assert stage.do(Remove(whom=others[0])) is None


def test_votes_that_are_held_back_arrive_when_another_epoch_has_begun(stage: Stage) -> None:
    leader = leader_of(stage)
    epoch = leader.led_epoch
    other = next(node for node in stage.world.running() if node is not leader)
    stage.do(HoldBack(who=other.node_id, of=Of.ELECTION, count=3, for_us=HOUR_US))
    stage.do(Kill(who=leader.node_id, down_us=0))
    [hold] = stage.world.network.holds
    assert stage.world.run(LIMIT_MS, stop=lambda: bool(hold.held))
    assert stage.world.run(LIMIT_MS, stop=lambda: not stage.world.network.holds)
    told = [node.progress.epoch for node in stage.world.running() if node.progress is not None]
    assert epoch is not None
    assert max(told) > epoch
