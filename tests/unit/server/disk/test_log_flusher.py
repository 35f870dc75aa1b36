"""Flushes of the log in parallel with other work, and the flushed end that follows them."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import pytest

from quorate.raft import api
from quorate.server.driver.raft_driver import ExitReason
from tests.unit.server.by_hand import FLUSH, SAVING, DrivenByHand, end_at, named, save

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_the_flushed_end_reaches_the_disk_by_itself(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.server.disk.log_flusher.SYNC_AFTER_MS", 0)
    stack = await open_stack()
    synced = asyncio.Event()
    loop = asyncio.get_running_loop()
    log = stack.driver.store.log
    sync = log.sync_flushed_end

    def note() -> None:
        sync()
        loop.call_soon_threadsafe(synced.set)

    monkeypatch.setattr(log, "sync_flushed_end", note)
    await stack.register()
    await asyncio.wait_for(synced.wait(), 60)


async def test_a_flushed_end_that_cannot_reach_the_disk_ends_the_core(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.server.disk.log_flusher.SYNC_AFTER_MS", 0)
    stack = await open_stack()

    def fail() -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(stack.driver.store.log, "sync_flushed_end", fail)
    registering = asyncio.ensure_future(stack.register())
    assert await asyncio.wait_for(stack.ended, 60) is ExitReason.DISK_FAILED
    registering.cancel()
    await asyncio.gather(registering, return_exceptions=True)


async def test_a_flush_is_told_when_it_is_over() -> None:
    by_hand = DrivenByHand()
    await by_hand.append(2)
    assert by_hand.disk.under_way == [FLUSH]
    assert by_hand.heard(api.LogFlushed) == 0
    await by_hand.finish(FLUSH)
    assert by_hand.core.heard[-1] == api.LogFlushed(end_at(2), 0)


async def test_one_flush_is_under_way_and_the_next_has_all_that_came_meanwhile() -> None:
    by_hand = DrivenByHand()
    await by_hand.append(1)
    await by_hand.append(1)
    await by_hand.append(1)
    await by_hand.finish(FLUSH)
    assert by_hand.core.heard[-1] == api.LogFlushed(end_at(1), 0)
    assert by_hand.disk.under_way == [FLUSH]
    await by_hand.finish(FLUSH)
    assert by_hand.core.heard[-1] == api.LogFlushed(end_at(3), 0)
    assert by_hand.disk.under_way == []


async def test_a_flush_waits_for_no_barrier_and_is_told_after_it() -> None:
    by_hand = DrivenByHand()
    await by_hand.append()
    await by_hand.tell(named("vote"), save())
    await by_hand.finish(FLUSH)
    assert by_hand.heard(api.LogFlushed) == 0
    await by_hand.finish(SAVING)
    assert by_hand.heard(api.LogFlushed) == 1


@pytest.mark.rule("disk_fail_stop")
async def test_a_flush_that_failed_is_not_told_and_ends_the_core() -> None:
    by_hand = DrivenByHand()
    await by_hand.append()
    await by_hand.finish(FLUSH, OSError(errno.EIO, "the disk is gone"))
    assert by_hand.heard(api.LogFlushed) == 0
    assert by_hand.ended == [ExitReason.DISK_FAILED]
