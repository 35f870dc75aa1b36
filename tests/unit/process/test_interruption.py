"""A stop interrupts work; work that is done first has its result, or its error."""

from __future__ import annotations

import asyncio

import pytest

from quorate.process.interruption import unless_stopped


async def test_work_that_is_done_first_has_its_result() -> None:
    async def work() -> int:
        return 7

    assert await unless_stopped(asyncio.Event(), work()) == 7


async def test_work_that_fails_first_has_its_error() -> None:
    async def work() -> None:
        raise OSError("no address")

    with pytest.raises(OSError, match="no address"):
        await unless_stopped(asyncio.Event(), work())


async def test_a_stop_cancels_the_work() -> None:
    stop, has_begun, ends = asyncio.Event(), asyncio.Event(), []

    async def work() -> int:
        try:
            has_begun.set()
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled")
        return 7

    waiting = asyncio.ensure_future(unless_stopped(stop, work()))
    await has_begun.wait()
    stop.set()
    assert await waiting is None
    assert ends == ["cancelled"]


async def test_a_caller_that_is_cancelled_cancels_the_work() -> None:
    has_begun, ends = asyncio.Event(), []

    async def work() -> None:
        try:
            has_begun.set()
            await asyncio.Event().wait()
        finally:
            ends.append("cancelled")

    waiting = asyncio.ensure_future(unless_stopped(asyncio.Event(), work()))
    await has_begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ends == ["cancelled"]
