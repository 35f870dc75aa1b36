"""Flushes of the log beside everything else, and the flushed end that follows them."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from quorate.consensus.driver import Ending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

    from tests.unit.consensus.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_the_flushed_end_reaches_the_disk_by_itself(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.consensus.flushing.SYNC_AFTER_MS", 0)
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
    monkeypatch.setattr("quorate.consensus.flushing.SYNC_AFTER_MS", 0)
    stack = await open_stack()

    def fail() -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(stack.driver.store.log, "sync_flushed_end", fail)
    registering = asyncio.ensure_future(stack.register())
    assert await asyncio.wait_for(stack.ended, 60) is Ending.DISK_FAILED
    registering.cancel()
    await asyncio.gather(registering, return_exceptions=True)
