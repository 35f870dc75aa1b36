"""Calls to the disk in threads, and their durations so far."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quorate.server.disk.executor import DiskCallTracker, InFlightCall, ThreadDiskExecutor

WAIT_S = 60


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_oldest_call_is_told_with_its_age() -> None:
    clock = Clock()
    calls = DiskCallTracker(clock)
    assert calls.oldest() is None
    first = calls.begin("a flush")
    clock.now += 2
    calls.begin("a read")
    clock.now += 1
    assert calls.oldest() == InFlightCall("a flush", 3.0)
    calls.end(first)
    assert calls.oldest() == InFlightCall("a read", 1.0)


def test_a_call_is_late_from_its_deadline_on() -> None:
    clock = Clock()
    calls = DiskCallTracker(clock)
    calls.begin("a flush")
    clock.now += 2.5
    assert calls.overdue(3000) is None
    clock.now += 0.5
    assert calls.overdue(3000) == InFlightCall("a flush", 3.0)


async def test_the_loop_goes_on_while_a_call_does_not_return() -> None:
    calls = DiskCallTracker()
    thread = ThreadDiskExecutor("test", calls)
    gate = threading.Event()
    waiting = thread.run("a flush", gate.wait)
    behind = thread.run("a read", lambda: 7)
    await asyncio.sleep(0)
    oldest = calls.oldest()
    assert oldest is not None
    assert oldest.what == "a flush"
    gate.set()
    assert await asyncio.wait_for(waiting, WAIT_S) is True
    assert await asyncio.wait_for(behind, WAIT_S) == 7
    assert calls.oldest() is None
    thread.close()


async def test_a_call_that_is_over_at_once_is_done_when_it_is_waited_for() -> None:
    thread = ThreadDiskExecutor("test", DiskCallTracker())
    done = thread.run("a flush", lambda: 7, wait_s=WAIT_S)
    assert done.done()
    assert done.result() == 7
    thread.close()


async def test_a_call_that_takes_longer_than_that_is_told_later() -> None:
    thread = ThreadDiskExecutor("test", DiskCallTracker())
    gate = threading.Event()
    waiting = thread.run("a flush", gate.wait, wait_s=0.001)
    assert not waiting.done()
    gate.set()
    assert await asyncio.wait_for(waiting, WAIT_S) is True
    thread.close()


async def test_what_a_call_raises_is_raised_where_it_is_awaited() -> None:
    thread = ThreadDiskExecutor("test", DiskCallTracker())

    def fail() -> None:
        raise OSError(5, "the disk is gone")

    for wait_s in (0.0, WAIT_S):
        with pytest.raises(OSError, match="the disk is gone"):
            await thread.run("a flush", fail, wait_s=wait_s)
    thread.close()


async def test_a_closed_thread_ends_after_what_it_was_given() -> None:
    thread = ThreadDiskExecutor("test", DiskCallTracker())
    last = thread.run("a read", lambda: 1)
    thread.close()
    assert await asyncio.wait_for(last, WAIT_S) == 1
