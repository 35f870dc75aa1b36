"""What is done to a world, one deed after another."""

from __future__ import annotations

import pytest

from quorate.records.ids import NodeId
from quorate.sim.action_runner import LEADER, Stage
from quorate.sim.actions.admin_requests import RemoveFromVoters
from quorate.sim.actions.client_requests import WriteRecords
from quorate.sim.actions.delayed_messages import HoldBack, Of
from quorate.sim.actions.disks import Fail, Rot, Wipe
from quorate.sim.actions.files import PutBack, RotSmall
from quorate.sim.actions.network import SplitNetwork
from quorate.sim.actions.processes import Die, Kill, Pause
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.checkers.oracle import Violation
from quorate.sim.cluster import World
from quorate.sim.engine.machine import SHORT, UNREADABLE
from quorate.sim.engine.network import PartitionShape
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.engine.process_supervisor import Keeper
from quorate.sim.engine.quorum_setup import build
from quorate.sim.faults.stale_files import SEGMENT, SMALL_FILES
from quorate.sim.sim_options import WorldOptions
from quorate.storage.errors import StorageError
from quorate.storage.layout import EPOCH_CHECKPOINT, FLUSHED_END, QUORUM_STATE

LIMIT_MS = 60_000
SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US


@pytest.fixture
def stage() -> Stage:
    """Three voters that are caught up, and somebody who starts their processes again."""
    world = World(1, WorldOptions())
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


def test_a_death_is_remembered_before_the_deeds_in_which_it_struck(stage: Stage) -> None:
    """Done after them it would count none of their steps."""
    now_us = stage.world.now_us
    stage.do(deed := WriteRecords())
    stage.remember_death(death := Die(who=1, step=3, down_us=SECOND_US))
    assert stage.done == [(now_us, death), (now_us, deed)]


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
    stage.do(SplitNetwork(shape=PartitionShape.ISOLATE, those=(1,), for_us=SECOND_US))
    assert stage.world.network.blocked
    run(stage, 2 * SECOND_US)
    assert not stage.world.network.blocked


def test_a_deed_may_be_about_whoever_leads(stage: Stage) -> None:
    leader = leader_of(stage)
    stage.do(Kill(who=LEADER, down_us=SECOND_US))
    assert leader.status is Status.STOPPED


def test_nobody_is_hurt_who_is_not_there(stage: Stage) -> None:
    stage.do(Kill(who=9, down_us=0))
    stage.do(SplitNetwork(shape=PartitionShape.LINK, those=(1, 9), for_us=0))
    stage.do(RemoveFromVoters(whom=9))
    assert len(stage.world.running()) == 3
    assert not stage.world.network.blocked


def test_a_process_dies_before_the_step_that_was_named(stage: Stage) -> None:
    leader = leader_of(stage)
    stage.do(Die(who=leader.node_id, step=1, down_us=SECOND_US))
    assert len(stage.world.running()) == 3
    stage.do(WriteRecords(count=1, who=leader.node_id))
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
    """It has set the rotten file aside, and an onlooker sees no rot on its disk."""
    node, other = stage.world.nodes[NodeId(3)], stage.world.nodes[NodeId(2)]
    for _ in range(20):
        stage.do(WriteRecords(count=3))
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
    assert stage.do(RemoveFromVoters(whom=others[0])) is None
    # Who does not look asks all the same, and the leader has to say no.
    token = stage.do(RemoveFromVoters(whom=others[0], is_bold=True))
    assert token is not None


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


def rot_all(stage: Stage, node: SimulatedNode, file: str) -> list[str]:
    """Flip each bit of a small file, a start each; the refusals."""
    said: list[str] = []
    stage.world.endings.when_refused = lambda _, error: said.append(str(error))
    for bit in range(8 * len(node.spoiling.content(SMALL_FILES[file]) or b"")):
        size_bytes = len(node.spoiling.content(SMALL_FILES[file]) or b"")
        node.kill()
        at_ppm = -(-(bit // 8) * 1_000_000 // size_bytes)
        stage.do(RotSmall(who=node.node_id, file=file, at_ppm=at_ppm, bit=bit % 8))
        node.start()
        for path in node.spoiling.paths:
            node.spoiling.mend(path)
        node.start()
        assert node.status is Status.RUNNING
    return said


@pytest.mark.parametrize("file", [QUORUM_STATE, EPOCH_CHECKPOINT])
def test_rot_in_small_files_is_refused_or_harms_nobody(stage: Stage, file: str) -> None:
    """Where it is neither, an invariant raises."""
    node = stage.world.nodes[NodeId(1)]
    assert any(file in said for said in rot_all(stage, node, file))
    assert not node.is_healing


def test_a_directory_that_is_refused_is_mended(stage: Stage) -> None:
    node = stage.world.nodes[NodeId(1)]
    stage.do(RotSmall(who=1, file=QUORUM_STATE, at_ppm=0, bit=0))
    assert not node.is_whole
    stage.do(Kill(who=1, down_us=SECOND_US))
    assert stage.world.run(LIMIT_MS, stop=lambda: node.status is Status.RUNNING)
    assert node.is_whole
    assert not node.spoiling.paths


def test_a_directory_is_not_refused_without_a_cause(stage: Stage) -> None:
    with pytest.raises(Violation, match="nothing harmed"):
        stage.world.endings.refused(stage.world.nodes[NodeId(1)], StorageError("no"))


def test_small_files_rot_one_at_a_time(stage: Stage) -> None:
    node = stage.world.nodes[NodeId(1)]
    for file in (QUORUM_STATE, EPOCH_CHECKPOINT):
        stage.do(RotSmall(who=1, file=file, at_ppm=0, bit=0))
    assert node.spoiling.paths == [SMALL_FILES[QUORUM_STATE]]


def test_a_small_file_is_named() -> None:
    with pytest.raises(ValueError, match="file 'odd': one of quorum-state"):
        RotSmall(who=1, file="odd", at_ppm=0, bit=0)


def outdated(stage: Stage, file: str) -> SimulatedNode:
    """A follower, a file of which is put back as it was before somebody else led."""
    node = next(n for n in stage.world.nodes.values() if n is not leader_of(stage))
    stage.do(PutBack(who=node.node_id, file=file, after_us=10 * SECOND_US, down_us=SECOND_US))
    stage.do(WriteRecords(count=3))
    stage.do(Kill(who=LEADER, down_us=SECOND_US))
    run(stage, 8 * SECOND_US)
    assert stage.world.run(LIMIT_MS, stop=lambda: node.status is not Status.RUNNING)
    return node


@pytest.mark.parametrize("file", [QUORUM_STATE, EPOCH_CHECKPOINT])
def test_an_old_file_that_the_log_contradicts_is_refused(stage: Stage, file: str) -> None:
    said: list[str] = []
    stage.world.endings.when_refused = lambda _, error: said.append(str(error))
    node = outdated(stage, file)
    run(stage, 2 * SECOND_US)
    assert node.status is Status.STOPPED
    assert file in said[0]


def test_an_old_segment_heals(stage: Stage) -> None:
    node = outdated(stage, SEGMENT)
    assert stage.world.run(LIMIT_MS, stop=lambda: node.is_healing)
    assert stage.world.run(LIMIT_MS, stop=lambda: is_caught_up(stage.world))
    assert node.is_whole


def test_an_old_flushed_end_only_says_less(stage: Stage) -> None:
    node = outdated(stage, FLUSHED_END)
    assert not node.is_whole
    assert stage.world.run(LIMIT_MS, stop=lambda: node.status is Status.RUNNING)
    assert node.is_whole


def test_an_only_voter_keeps_its_log() -> None:
    world = World(1, WorldOptions(voters=1))
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world))
    stage = Stage(world)
    stage.do(PutBack(who=1, file=SEGMENT, after_us=SECOND_US, down_us=SECOND_US))
    stage.do(WriteRecords(count=3))
    run(stage, 2 * SECOND_US)
    assert world.nodes[NodeId(1)].is_whole


def test_a_file_that_is_put_back_is_named() -> None:
    with pytest.raises(ValueError, match="file 'odd': one of quorum-state"):
        PutBack(who=1, file="odd", after_us=0, down_us=0)


@pytest.mark.parametrize("fault", [SHORT, UNREADABLE])
def test_calls_fail_for_a_while_and_nothing_is_lost(stage: Stage, fault: str) -> None:
    node = stage.world.nodes[NodeId(1)]
    end = node.log.end
    stage.do(Fail(who=1, fault=fault, for_us=5 * SECOND_US))
    stage.do(Kill(who=1, down_us=0))
    run(stage, 4 * SECOND_US)
    assert node.status is Status.STOPPED
    assert stage.world.run(LIMIT_MS, stop=lambda: node.status is Status.RUNNING)
    assert node.is_whole
    assert node.log.end >= end


def test_a_process_that_ran_short_is_started_anew(stage: Stage) -> None:
    node = stage.world.nodes[NodeId(1)]
    life = node.incarnation
    stage.do(Fail(who=1, fault=SHORT, for_us=5 * SECOND_US))
    stage.do(Kill(who=2, down_us=SECOND_US))
    stage.do(Kill(who=LEADER, down_us=SECOND_US))
    assert stage.world.run(LIMIT_MS, stop=lambda: node.incarnation > life)
    assert stage.world.run(LIMIT_MS, stop=lambda: is_caught_up(stage.world))


def test_a_process_whose_disk_failed_is_started_when_it_can_be_read(stage: Stage) -> None:
    node = stage.world.nodes[NodeId(1)]
    life = node.incarnation
    stage.do(Fail(who=1, fault=UNREADABLE, for_us=SECOND_US))
    node.fail("the disk failed")
    run(stage, 2 * SECOND_US)
    assert (node.status, node.incarnation) == (Status.RUNNING, life + 1)


def test_a_fault_of_a_disk_is_named() -> None:
    with pytest.raises(ValueError, match="fault 'odd': one of full"):
        Fail(who=1, fault="odd", for_us=0)
