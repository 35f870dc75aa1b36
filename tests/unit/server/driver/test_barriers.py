"""Effects that everything behind them waits for."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.raft.messages import DescribeQuorumRequest, DescribeQuorumResponse
from quorate.server.driver.raft_driver import ExitReason
from quorate.storage.log_store import LogStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.records.ids import Millis
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_nothing_is_answered_before_the_barrier_is_over(open_stack: Open) -> None:
    driver = (await open_stack()).driver
    gate = threading.Event()

    def clean() -> None:
        gate.wait()

    driver.deliver(clean)
    assert driver._barriers.is_active
    _, answer = driver.submit(DescribeQuorumRequest())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not answer.done()
    gate.set()
    assert isinstance(await asyncio.wait_for(answer, 60), DescribeQuorumResponse)
    assert not driver._barriers.is_active


@pytest.mark.rule("disk_fail_stop")
async def test_an_election_state_that_cannot_be_saved_ends_the_core(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(LogStore, "save_election", fail)
    # The single voter campaigns immediately, and its vote has to be saved first.
    stack = await open_stack(is_active=False)
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.DISK_FAILED
    assert stack.network.sent == []


async def test_what_a_barrier_gives_is_heard_before_what_came_meanwhile(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = (await open_stack()).driver
    heard: list[api.Event] = []
    step = driver.core.step

    def listen(event: api.Event, now_ms: Millis) -> api.Update:
        heard.append(event)
        return step(event, now_ms)

    monkeypatch.setattr(driver.core, "step", listen)
    cleaned = api.LogCleaned(driver.store.log.log_start, ())
    driver.deliver(lambda: cleaned)
    _, answer = driver.submit(DescribeQuorumRequest())
    await asyncio.wait_for(answer, 60)
    of_two = [e for e in heard if e is cleaned or isinstance(e, api.RequestReceived)]
    assert of_two[0] is cleaned
