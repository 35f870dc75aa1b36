"""Events in, effects performed in order, and what happens when the disk fails."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.consensus.driver import Ending, RaftDriver
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.raft import api
from quorate.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis
from quorate.storage.errors import DamagedLogError
from tests.unit.consensus.conftest import CALLER, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.consensus.conftest import Stack

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


@pytest.mark.parametrize(
    "shortage",
    [OSError(errno.EMFILE, "too many"), MemoryError(), RuntimeError("can't start new thread")],
)
async def test_rule_31_a_shortage_of_the_machine_is_no_failed_disk(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch, shortage: Exception
) -> None:
    stack = await open_stack()

    def fail() -> None:
        raise shortage

    monkeypatch.setattr(type(stack.driver.store.log), "is_dirty", True)
    monkeypatch.setattr(stack.driver.store.log, "begin_flush", fail)
    stack.driver.deliver(api.TimerFired())
    assert await asyncio.wait_for(stack.ended, 60) is Ending.SHORT


async def test_rule_17_a_failed_flush_ends_the_core(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()

    def fail() -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(type(stack.driver.store.log), "is_dirty", True)
    monkeypatch.setattr(stack.driver.store.log, "begin_flush", fail)
    stack.driver.deliver(api.TimerFired())
    assert await asyncio.wait_for(stack.ended, 60) is Ending.DISK_FAILED
    _, answer = stack.driver.submit(DescribeQuorumRequest())
    assert answer.cancelled()


async def test_rule_17_damage_found_while_serving_resigns_before_it_ends(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.damaged("a batch does not check")
    stack.driver.damaged("once is enough")
    assert stack.driver.ending is None
    assert await asyncio.wait_for(stack.ended, 60) is Ending.DAMAGED


async def test_damage_elsewhere_ends_the_core(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.fail(DamagedLogError("a batch does not check"))
    assert await asyncio.wait_for(stack.ended, 60) is Ending.DAMAGED


async def test_a_defect_ends_the_core(open_stack: Open) -> None:
    stack = await open_stack()

    def work() -> None:
        raise AssertionError("a defect")

    stack.driver.deliver(work)
    assert await stack.ended is Ending.CRASHED


async def test_a_single_voter_has_nobody_to_hand_over_to(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.deliver(api.ShutdownRequested(stack.driver.host.monotonic_ms()))
    assert await asyncio.wait_for(stack.ended, 60) is Ending.STOPPED


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
    await eventually(lambda: driver.is_standing)
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
    assert await asyncio.wait_for(stack.ended, 60) is Ending.STOPPED
    assert isinstance(await created, CreateTopicsReply)


async def test_a_disk_that_does_not_answer_does_not_hold_up_the_end(open_stack: Open) -> None:
    stack = await open_stack()
    gate = threading.Event()
    stack.driver.deliver(waiting_for(gate))
    await stack.application.close()
    assert not await stack.driver.close(0.01)
    stack.is_closed = True
    gate.set()
    await eventually(lambda: stack.driver.disk_calls.oldest() is None)
