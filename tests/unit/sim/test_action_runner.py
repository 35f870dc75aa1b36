"""Actions on a simulated cluster, one after another."""

from __future__ import annotations

import pytest

from quorate.records.ids import NodeId
from quorate.sim.action_runner import LEADER, ActionRunner
from quorate.sim.actions.admin_requests import RemoveFromVoters
from quorate.sim.actions.client_requests import WriteRecords
from quorate.sim.actions.delayed_messages import DelayMessages, MessageTopic
from quorate.sim.actions.disks import FailDiskCalls, FlipLogBit, ReplaceDisk
from quorate.sim.actions.files import CorruptSmallFile, RestoreStaleFile
from quorate.sim.actions.network import SplitNetwork
from quorate.sim.actions.processes import CrashAtStep, Kill, Pause
from quorate.sim.checkers.liveness import is_caught_up
from quorate.sim.checkers.oracle import Violation
from quorate.sim.cluster import Cluster
from quorate.sim.engine.machine import SHORT, UNREADABLE
from quorate.sim.engine.network import PartitionShape
from quorate.sim.engine.node import SimulatedNode, Status
from quorate.sim.engine.process_supervisor import ProcessSupervisor
from quorate.sim.engine.quorum_setup import build
from quorate.sim.faults.stale_files import SEGMENT, SMALL_FILES
from quorate.sim.sim_options import WorldOptions
from quorate.storage.errors import StorageError
from quorate.storage.layout import EPOCH_CHECKPOINT, FLUSHED_END, QUORUM_STATE

LIMIT_MS = 60_000
SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US


@pytest.fixture
def action_runner() -> ActionRunner:
    """Three voters that are caught up, and a supervisor that restarts their processes."""
    world = Cluster(1, WorldOptions())
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world))
    stage = ActionRunner(world)
    ProcessSupervisor(stage).begin()
    return stage


def leader_of(action_runner: ActionRunner) -> SimulatedNode:
    leader = action_runner.cluster.leader()
    assert leader is not None
    return leader


def run(action_runner: ActionRunner, for_us: int) -> None:
    action_runner.cluster.run(action_runner.cluster.now_ms + for_us // 1000)


def test_deeds_are_remembered_with_their_moment(action_runner: ActionRunner) -> None:
    now_us = action_runner.cluster.now_us
    action_runner.run(deed := Kill(who=1, down_us=SECOND_US))
    assert action_runner.done == [(now_us, deed)]


def test_a_death_is_remembered_before_the_deeds_in_which_it_struck(
    action_runner: ActionRunner,
) -> None:
    """Done after them it would count none of their steps."""
    now_us = action_runner.cluster.now_us
    action_runner.run(deed := WriteRecords())
    action_runner.record_crash(death := CrashAtStep(who=1, step=3, down_us=SECOND_US))
    assert action_runner.done == [(now_us, death), (now_us, deed)]


def test_nothing_is_done_once_faults_have_stopped(action_runner: ActionRunner) -> None:
    action_runner.end()
    action_runner.run(Kill(who=1, down_us=SECOND_US))
    assert len(action_runner.cluster.running()) == 3
    assert not action_runner.done


def test_a_fault_ends_when_its_time_is_over(action_runner: ActionRunner) -> None:
    node = action_runner.resolve(1)
    assert node is not None
    action_runner.run(Kill(who=1, down_us=SECOND_US))
    assert node.status is Status.STOPPED
    run(action_runner, 2 * SECOND_US)
    action_runner.run(Pause(who=1, for_us=SECOND_US))
    assert node.is_paused
    run(action_runner, 2 * SECOND_US)
    assert not node.is_paused
    action_runner.run(SplitNetwork(shape=PartitionShape.ISOLATE, those=(1,), for_us=SECOND_US))
    assert action_runner.cluster.network.blocked
    run(action_runner, 2 * SECOND_US)
    assert not action_runner.cluster.network.blocked


def test_a_deed_may_be_about_whoever_leads(action_runner: ActionRunner) -> None:
    leader = leader_of(action_runner)
    action_runner.run(Kill(who=LEADER, down_us=SECOND_US))
    assert leader.status is Status.STOPPED


def test_nobody_is_hurt_who_is_not_there(action_runner: ActionRunner) -> None:
    action_runner.run(Kill(who=9, down_us=0))
    action_runner.run(SplitNetwork(shape=PartitionShape.LINK, those=(1, 9), for_us=0))
    action_runner.run(RemoveFromVoters(whom=9))
    assert len(action_runner.cluster.running()) == 3
    assert not action_runner.cluster.network.blocked


def test_a_process_dies_before_the_step_that_was_named(action_runner: ActionRunner) -> None:
    leader = leader_of(action_runner)
    action_runner.run(CrashAtStep(who=leader.node_id, step=1, down_us=SECOND_US))
    assert len(action_runner.cluster.running()) == 3
    action_runner.run(WriteRecords(count=1, who=leader.node_id))
    run(action_runner, 100_000)
    assert leader.status is Status.STOPPED
    run(action_runner, 2 * SECOND_US)
    assert len(action_runner.cluster.running()) == 3


def test_damage_stays_within_a_minority(action_runner: ActionRunner) -> None:
    disks = {node.node_id: node.directory_id for node in action_runner.cluster.nodes.values()}
    for who in disks:
        action_runner.run(ReplaceDisk(who=who, down_us=0))
    changed = [
        n for n in action_runner.cluster.nodes.values() if n.directory_id != disks[n.node_id]
    ]
    assert len(changed) == 1
    action_runner.run(FlipLogBit(who=3, at_ppm=500_000, bit=0))
    assert not action_runner.cluster.nodes[changed[0].node_id].is_corrupt
    assert not any(node.is_corrupt for node in action_runner.cluster.nodes.values())


def test_a_voter_whose_recovery_was_cut_short_is_damaged(action_runner: ActionRunner) -> None:
    """It has quarantined the corrupt file, and an onlooker sees no corruption on its disk."""
    node, other = action_runner.cluster.nodes[NodeId(3)], action_runner.cluster.nodes[NodeId(2)]
    for _ in range(20):
        action_runner.run(WriteRecords(count=3))
        run(action_runner, SECOND_US)
    action_runner.run(Kill(who=3, down_us=HOUR_US))
    action_runner.run(FlipLogBit(who=3, at_ppm=0, bit=0))
    assert node.is_corrupt
    step = 0
    while node.is_corrupt:
        step += 1
        action_runner.run(CrashAtStep(who=3, step=step, down_us=HOUR_US))
        node.start()
    assert node.status is Status.STOPPED, "it died on its way"
    assert not node.is_intact
    assert not action_runner.survivability.can_lose_disk(other)
    node.start()
    assert not node.is_intact, "it heals"


def test_no_change_leaves_a_set_without_a_majority(action_runner: ActionRunner) -> None:
    leader = leader_of(action_runner)
    others = [node.node_id for node in action_runner.cluster.nodes.values() if node is not leader]
    for who in others:
        action_runner.run(Kill(who=who, down_us=60 * SECOND_US))
    assert action_runner.run(RemoveFromVoters(whom=others[0])) is None
    # Who does not look asks all the same, and the leader has to say no.
    token = action_runner.run(RemoveFromVoters(whom=others[0], is_bold=True))
    assert token is not None


def test_votes_that_are_held_back_arrive_when_another_epoch_has_begun(
    action_runner: ActionRunner,
) -> None:
    leader = leader_of(action_runner)
    epoch = leader.led_epoch
    other = next(node for node in action_runner.cluster.running() if node is not leader)
    action_runner.run(
        DelayMessages(who=other.node_id, of=MessageTopic.ELECTION, count=3, for_us=HOUR_US)
    )
    action_runner.run(Kill(who=leader.node_id, down_us=0))
    [hold] = action_runner.cluster.network.holds
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: bool(hold.held))
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: not action_runner.cluster.network.holds)
    told = [
        node.progress.epoch for node in action_runner.cluster.running() if node.progress is not None
    ]
    assert epoch is not None
    assert max(told) > epoch


def rot_all(action_runner: ActionRunner, node: SimulatedNode, file: str) -> list[str]:
    """Flip each bit of a small file, a start each; the refusals."""
    said: list[str] = []
    action_runner.cluster.process_exits.when_refused = lambda _, error: said.append(str(error))
    for bit in range(8 * len(node.file_tampering.content(SMALL_FILES[file]) or b"")):
        size_bytes = len(node.file_tampering.content(SMALL_FILES[file]) or b"")
        node.kill()
        at_ppm = -(-(bit // 8) * 1_000_000 // size_bytes)
        action_runner.run(CorruptSmallFile(who=node.node_id, file=file, at_ppm=at_ppm, bit=bit % 8))
        node.start()
        for path in node.file_tampering.paths:
            node.file_tampering.repair(path)
        node.start()
        assert node.status is Status.RUNNING
    return said


@pytest.mark.parametrize("file", [QUORUM_STATE, EPOCH_CHECKPOINT])
def test_rot_in_small_files_is_refused_or_harms_nobody(
    action_runner: ActionRunner, file: str
) -> None:
    """An invariant raises if it is neither."""
    node = action_runner.cluster.nodes[NodeId(1)]
    assert any(file in said for said in rot_all(action_runner, node, file))
    assert not node.is_healing


def test_a_directory_that_is_refused_is_mended(action_runner: ActionRunner) -> None:
    node = action_runner.cluster.nodes[NodeId(1)]
    action_runner.run(CorruptSmallFile(who=1, file=QUORUM_STATE, at_ppm=0, bit=0))
    assert not node.is_intact
    action_runner.run(Kill(who=1, down_us=SECOND_US))
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: node.status is Status.RUNNING)
    assert node.is_intact
    assert not node.file_tampering.paths


def test_a_directory_is_not_refused_without_a_cause(action_runner: ActionRunner) -> None:
    with pytest.raises(Violation, match="nothing harmed"):
        action_runner.cluster.process_exits.refused(
            action_runner.cluster.nodes[NodeId(1)], StorageError("no")
        )


def test_small_files_rot_one_at_a_time(action_runner: ActionRunner) -> None:
    node = action_runner.cluster.nodes[NodeId(1)]
    for file in (QUORUM_STATE, EPOCH_CHECKPOINT):
        action_runner.run(CorruptSmallFile(who=1, file=file, at_ppm=0, bit=0))
    assert node.file_tampering.paths == [SMALL_FILES[QUORUM_STATE]]


def test_a_small_file_is_named() -> None:
    with pytest.raises(ValueError, match="file 'odd': one of quorum-state"):
        CorruptSmallFile(who=1, file="odd", at_ppm=0, bit=0)


def outdated(action_runner: ActionRunner, file: str) -> SimulatedNode:
    """A follower, a file of which is put back as it was before another replica led."""
    node = next(
        n for n in action_runner.cluster.nodes.values() if n is not leader_of(action_runner)
    )
    action_runner.run(
        RestoreStaleFile(who=node.node_id, file=file, after_us=10 * SECOND_US, down_us=SECOND_US)
    )
    action_runner.run(WriteRecords(count=3))
    action_runner.run(Kill(who=LEADER, down_us=SECOND_US))
    run(action_runner, 8 * SECOND_US)
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: node.status is not Status.RUNNING)
    return node


@pytest.mark.parametrize("file", [QUORUM_STATE, EPOCH_CHECKPOINT])
def test_an_old_file_that_the_log_contradicts_is_refused(
    action_runner: ActionRunner, file: str
) -> None:
    said: list[str] = []
    action_runner.cluster.process_exits.when_refused = lambda _, error: said.append(str(error))
    node = outdated(action_runner, file)
    run(action_runner, 2 * SECOND_US)
    assert node.status is Status.STOPPED
    assert file in said[0]


def test_an_old_segment_heals(action_runner: ActionRunner) -> None:
    node = outdated(action_runner, SEGMENT)
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: node.is_healing)
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: is_caught_up(action_runner.cluster))
    assert node.is_intact


def test_an_old_flushed_end_only_says_less(action_runner: ActionRunner) -> None:
    node = outdated(action_runner, FLUSHED_END)
    assert not node.is_intact
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: node.status is Status.RUNNING)
    assert node.is_intact


def test_an_only_voter_keeps_its_log() -> None:
    world = Cluster(1, WorldOptions(voters=1))
    build(world)
    assert world.run(LIMIT_MS, stop=lambda: is_caught_up(world))
    stage = ActionRunner(world)
    stage.run(RestoreStaleFile(who=1, file=SEGMENT, after_us=SECOND_US, down_us=SECOND_US))
    stage.run(WriteRecords(count=3))
    run(stage, 2 * SECOND_US)
    assert world.nodes[NodeId(1)].is_intact


def test_a_file_that_is_put_back_is_named() -> None:
    with pytest.raises(ValueError, match="file 'odd': one of quorum-state"):
        RestoreStaleFile(who=1, file="odd", after_us=0, down_us=0)


@pytest.mark.parametrize("fault", [SHORT, UNREADABLE])
def test_calls_fail_for_a_while_and_nothing_is_lost(
    action_runner: ActionRunner, fault: str
) -> None:
    node = action_runner.cluster.nodes[NodeId(1)]
    end = node.log.end
    action_runner.run(FailDiskCalls(who=1, fault=fault, for_us=5 * SECOND_US))
    action_runner.run(Kill(who=1, down_us=0))
    run(action_runner, 4 * SECOND_US)
    assert node.status is Status.STOPPED
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: node.status is Status.RUNNING)
    assert node.is_intact
    assert node.log.end >= end


def test_a_process_that_ran_short_is_started_anew(action_runner: ActionRunner) -> None:
    node = action_runner.cluster.nodes[NodeId(1)]
    life = node.incarnation
    action_runner.run(FailDiskCalls(who=1, fault=SHORT, for_us=5 * SECOND_US))
    action_runner.run(Kill(who=2, down_us=SECOND_US))
    action_runner.run(Kill(who=LEADER, down_us=SECOND_US))
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: node.incarnation > life)
    assert action_runner.cluster.run(LIMIT_MS, stop=lambda: is_caught_up(action_runner.cluster))


def test_a_process_whose_disk_failed_is_started_when_it_can_be_read(
    action_runner: ActionRunner,
) -> None:
    node = action_runner.cluster.nodes[NodeId(1)]
    life = node.incarnation
    action_runner.run(FailDiskCalls(who=1, fault=UNREADABLE, for_us=SECOND_US))
    node.fail("the disk failed")
    run(action_runner, 2 * SECOND_US)
    assert (node.status, node.incarnation) == (Status.RUNNING, life + 1)


def test_a_fault_of_a_disk_is_named() -> None:
    with pytest.raises(ValueError, match="fault 'odd': one of full"):
        FailDiskCalls(who=1, fault="odd", for_us=0)
