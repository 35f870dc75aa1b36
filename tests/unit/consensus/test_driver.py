"""Events in, effects performed in order, and what happens when the disk fails."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from quorate.consensus.driver import Ending, monotonic_ms, wall_ms
from quorate.raft import api
from quorate.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse
from quorate.records.errors import ErrorCode
from quorate.storage.errors import DamagedLogError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

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
    done: list[str] = []

    def work() -> api.Event:
        done.append("worked")
        return api.TimerFired()

    stack.driver.deliver(work)
    assert done == ["worked"]


async def test_a_failed_flush_ends_the_core(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()

    def fail() -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(type(stack.driver.store.log), "is_dirty", True)
    monkeypatch.setattr(stack.driver.store.log, "begin_flush", fail)
    stack.driver.deliver(api.TimerFired())
    assert await asyncio.wait_for(stack.ended, 20) is Ending.DISK_FAILED
    _, answer = stack.driver.submit(DescribeQuorumRequest())
    assert answer.cancelled()


async def test_damage_found_while_serving_resigns_before_it_ends(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.damaged("a batch does not check")
    stack.driver.damaged("once is enough")
    assert stack.driver.ending is None
    assert await asyncio.wait_for(stack.ended, 20) is Ending.DAMAGED


async def test_damage_elsewhere_ends_the_core(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.fail(DamagedLogError("a batch does not check"))
    assert await asyncio.wait_for(stack.ended, 20) is Ending.DAMAGED


async def test_a_defect_ends_the_core(open_stack: Open) -> None:
    stack = await open_stack()

    def work() -> None:
        raise AssertionError("a defect")

    stack.driver.deliver(work)
    assert await stack.ended is Ending.CRASHED


async def test_a_single_voter_has_nobody_to_hand_over_to(open_stack: Open) -> None:
    stack = await open_stack()
    stack.driver.deliver(api.ShutdownRequested(monotonic_ms()))
    assert await asyncio.wait_for(stack.ended, 20) is Ending.STOPPED


def test_clocks_count_milliseconds() -> None:
    assert monotonic_ms() <= monotonic_ms()
    assert wall_ms() > 1_600_000_000_000
