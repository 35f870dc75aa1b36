"""Events in, effects performed in order, and what happens when the disk fails."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.raft import api
from quorate.raft.messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    FetchedBatches,
    FetchRequest,
    FetchResponse,
    LeaderInfo,
    VoteRequest,
    VoteResponse,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, ClusterId, Epoch, Millis, NodeId, ReplicaKey
from quorate.server.driver.raft_driver import ExitReason, RaftDriver
from quorate.storage.errors import DamagedLogError
from tests.unit.server.by_hand import (
    CLEANING,
    CUTTING,
    FLUSH,
    INSTALLING,
    READING,
    SAVING,
    DrivenByHand,
    append,
    end_at,
    named,
    records_of,
    save,
    settle,
)
from tests.unit.server.conftest import CALLER, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_a_single_voter_elects_itself(open_stack: Open) -> None:
    stack = await open_stack()
    progress = stack.driver.progress
    assert progress is not None
    assert (progress.role, progress.leader_id, progress.is_leader) == ("leader", 1, True)


async def test_a_request_gets_its_answer(open_stack: Open) -> None:
    stack = await open_stack()
    _, answer = stack.driver.submit(DescribeQuorumRequest())
    described = await answer
    assert isinstance(described, DescribeQuorumResponse)
    assert described.error is ErrorCode.NONE


async def test_tokens_are_never_used_twice(open_stack: Open) -> None:
    driver = (await open_stack()).driver
    assert driver.next_token() != driver.next_token()


async def test_work_in_an_events_place_gives_the_next_event(open_stack: Open) -> None:
    stack = await open_stack()
    worked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> api.Event:
        loop.call_soon_threadsafe(worked.set)
        return api.TimerFired()

    stack.driver.deliver(work)
    assert not worked.is_set()
    await asyncio.wait_for(worked.wait(), 60)


@pytest.mark.rule("disk_error_classes")
@pytest.mark.parametrize(
    "shortage",
    [OSError(errno.EMFILE, "too many"), MemoryError(), RuntimeError("can't start new thread")],
)
async def test_a_shortage_of_the_machine_is_no_failed_disk(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch, shortage: Exception
) -> None:
    stack = await open_stack()

    def fail() -> None:
        raise shortage

    monkeypatch.setattr(type(stack.driver.store.log), "is_dirty", True)
    monkeypatch.setattr(stack.driver.store.log, "begin_flush", fail)
    stack.driver.deliver(api.TimerFired())
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.SHORT


@pytest.mark.rule("disk_fail_stop")
async def test_a_failed_flush_ends_the_core(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()

    def fail() -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(type(stack.driver.store.log), "is_dirty", True)
    monkeypatch.setattr(stack.driver.store.log, "begin_flush", fail)
    stack.driver.deliver(api.TimerFired())
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.DISK_FAILED
    _, answer = stack.driver.submit(DescribeQuorumRequest())
    assert answer.cancelled()


@pytest.mark.rule("disk_fail_stop")
async def test_damage_found_while_serving_resigns_before_it_ends(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.on_damage("a batch does not check")
    stack.driver.on_damage("once is enough")
    assert stack.driver.exit_reason is None
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.DAMAGED


async def test_damage_elsewhere_ends_the_core(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.fail(DamagedLogError("a batch does not check"))
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.DAMAGED


async def test_a_defect_ends_the_core(open_stack: Open) -> None:
    stack = await open_stack()

    def work() -> None:
        raise AssertionError("a defect")

    stack.driver.deliver(work)
    assert await stack.ended is ExitReason.CRASHED


async def test_a_single_voter_has_nobody_to_hand_over_to(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.deliver(api.ShutdownRequested(stack.driver.host.monotonic_ms()))
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.STOPPED


def waiting_for(gate: threading.Event) -> Callable[[], None]:
    """Cleaning that takes until the gate opens."""

    def work() -> None:
        gate.wait()

    return work


async def test_a_core_that_stands_for_too_long_is_waited_for_by_nobody(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    driver, controller = stack.driver, stack.application.controller
    gate = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(RaftDriver, "deadline_ms", 1)
        driver.deliver(waiting_for(gate))
    _, asked_before = driver.submit(DescribeQuorumRequest())
    await eventually(lambda: driver.is_disk_stalled)
    assert asked_before.cancelled()
    assert driver.submit(DescribeQuorumRequest())[1].cancelled()
    for request in (stack.create("topic"), stack.topic_count()):
        with pytest.raises(ControllerApiError):
            await request
    assert not controller.is_active
    gate.set()
    await eventually(lambda: controller.is_active)
    _, answer = driver.submit(DescribeQuorumRequest())
    assert isinstance(await answer, DescribeQuorumResponse)


async def test_replies_to_what_commits_are_sent_before_the_end(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.register()
    created = stack.application.write(CreateTopics((NewTopic("topic"),)), CALLER)
    stack.driver.shut_down(Millis(20_000))
    with pytest.raises(ControllerApiError):
        await stack.create("later")
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.STOPPED
    assert isinstance(await created, CreateTopicsReply)


async def test_a_disk_that_does_not_answer_does_not_hold_up_the_end(open_stack: Open) -> None:
    stack = await open_stack()
    gate = threading.Event()
    stack.driver.deliver(waiting_for(gate))
    await stack.application.close()
    assert not await stack.driver.close(0.01)
    stack.is_closed = True
    gate.set()
    await eventually(lambda: stack.driver.access.calls.oldest() is None)


# --- barriers -------------------------------------------------------------------------------------

CANDIDATE = ReplicaKey(NodeId(2))
VOTE = VoteRequest(
    cluster_id=ClusterId("cluster"),
    voter=ReplicaKey(NodeId(1)),
    replica=CANDIDATE,
    replica_epoch=Epoch(5),
    last=end_at(0, 0),
    pre_vote=False,
)
GRANTED = VoteResponse(ErrorCode.NONE, LeaderInfo(None, Epoch(5)), vote_granted=True)
FETCH = FetchRequest(
    cluster_id=ClusterId("cluster"),
    replica=CANDIDATE,
    current_leader_epoch=Epoch(1),
    fetch_offset=end_at(0).offset,
    last_fetched_epoch=Epoch(0),
    max_wait_ms=Millis(0),
    max_bytes=1 << 20,
)
ASKED = api.SendRequest(CallId(1), api.Peer(NodeId(2), "node-2", 9094), VOTE)


async def test_no_vote_leaves_before_it_is_saved() -> None:
    by_hand = DrivenByHand()
    answer = await by_hand.ask(VOTE, save(), response=GRANTED)
    assert by_hand.disk.under_way == [SAVING]
    assert not answer.done()
    await by_hand.finish(SAVING)
    assert answer.result() == GRANTED


async def test_nobody_is_asked_for_a_vote_before_the_own_one_is_saved() -> None:
    by_hand = DrivenByHand()
    await by_hand.tell(named("campaign"), save(), ASKED)
    assert by_hand.sides.done == []
    await by_hand.finish(SAVING)
    assert "sent VoteRequest" in by_hand.sides.done


async def test_a_vote_that_cannot_be_saved_never_leaves() -> None:
    by_hand = DrivenByHand()
    answer = await by_hand.ask(VOTE, save(), response=GRANTED)
    await by_hand.finish(SAVING, OSError(errno.EIO, "the disk is gone"))
    assert by_hand.ended == [ExitReason.DISK_FAILED]
    assert answer.cancelled()


async def test_the_core_hears_nothing_while_an_effect_has_to_wait() -> None:
    by_hand = DrivenByHand()
    await by_hand.tell(named("vote"), save())
    later = [named("one"), named("two")]
    for event in later:
        await by_hand.tell(event)
    assert by_hand.core.heard == [named("vote")]
    await by_hand.finish(SAVING)
    assert by_hand.core.heard == [named("vote"), *later]


async def test_effects_are_performed_in_their_order() -> None:
    """The state that a message reports is written when the message leaves."""
    by_hand = DrivenByHand()
    await by_hand.tell(named("lead"), append(0), ASKED)
    assert by_hand.sides.done[:2] == ["on_appended", "sent VoteRequest"]


@pytest.mark.rule("log_generation")
async def test_a_cut_waits_for_the_flush_under_way_and_no_other_begins() -> None:
    by_hand = DrivenByHand()
    await by_hand.append(2)
    await by_hand.append(1)
    await by_hand.tell(named("diverged"), api.TruncateLog(end_at(2), 1))
    assert by_hand.disk.under_way == [FLUSH]
    await by_hand.finish(FLUSH)
    assert by_hand.disk.under_way == [CUTTING]
    assert by_hand.end == 3
    await by_hand.finish(CUTTING)
    assert by_hand.end == 2


@pytest.mark.parametrize("what", [CUTTING, CLEANING])
async def test_whatever_changes_the_log_waits_for_those_who_read_it(what: str) -> None:
    by_hand = DrivenByHand()
    await by_hand.append(2)
    await by_hand.append(1)
    await by_hand.finish(FLUSH)
    await by_hand.finish(FLUSH)
    answer = await by_hand.ask(FETCH, response=records_of(0, 3))
    assert by_hand.disk.under_way == [READING]
    if what == CUTTING:
        await by_hand.tell(named("diverged"), api.TruncateLog(end_at(2), 1))
    else:
        by_hand.driver.deliver(lambda: None)
        await settle()
    assert by_hand.disk.under_way == [READING]
    await by_hand.finish(READING)
    assert by_hand.disk.under_way == [what]
    response = answer.result()
    assert isinstance(response, FetchResponse)
    assert isinstance(response.records, FetchedBatches)
    assert response.records.data


async def test_the_core_hears_of_a_cut_before_what_came_meanwhile() -> None:
    by_hand = DrivenByHand()
    await by_hand.append(2)
    await by_hand.append(1)
    await by_hand.finish(FLUSH)
    await by_hand.finish(FLUSH)
    before = len(by_hand.core.heard)
    await by_hand.tell(named("diverged"), api.TruncateLog(end_at(2), 1))
    await by_hand.tell(named("meanwhile"))
    await by_hand.finish(CUTTING)
    cut = api.LogTruncated(end_at(2), 1)
    assert by_hand.core.heard[before:] == [named("diverged"), cut, named("meanwhile")]


async def test_the_core_hears_of_what_was_cleaned_before_what_came_meanwhile() -> None:
    by_hand = DrivenByHand()
    cleaned = api.LogCleaned(end_at(0).offset, ())
    by_hand.driver.deliver(lambda: cleaned)
    await by_hand.tell(named("meanwhile"))
    await by_hand.finish(CLEANING)
    assert by_hand.core.heard == [cleaned, named("meanwhile")]


async def test_a_snapshot_takes_the_place_of_the_log_when_nobody_uses_it() -> None:
    by_hand = DrivenByHand()
    await by_hand.append()
    await by_hand.tell(
        named("far behind"), api.InstallSnapshot(snapshot_id=end_at(9), generation=1)
    )
    assert by_hand.sides.done[-1] == "suspend_storage_access"
    assert by_hand.disk.under_way == [FLUSH]
    await by_hand.finish(FLUSH)
    assert by_hand.disk.under_way == [INSTALLING]
    assert by_hand.heard(api.LogFlushed) == 0
