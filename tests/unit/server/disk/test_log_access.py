"""Access to the log for reads, for flushes, and alone."""

from __future__ import annotations

import asyncio
import errno
import threading
from typing import TYPE_CHECKING

import pytest

from quorate.server.driver.raft_driver import ExitReason
from quorate.storage.errors import DamagedLogError
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_what_changes_the_log_waits_for_those_that_read_it(open_stack: Open) -> None:
    access = (await open_stack()).driver.access
    gate = threading.Event()
    done: list[str] = []

    def read() -> None:
        gate.wait()
        done.append("read")

    reading = access.read("a read of a test", read)
    changing = asyncio.ensure_future(
        access.run_exclusive("a change of a test", lambda: done.append("cut"))
    )
    await asyncio.sleep(0)
    assert access.is_exclusive
    gate.set()
    await asyncio.wait_for(asyncio.gather(reading, changing), 60)
    assert (done, access.is_exclusive) == (["read", "cut"], False)


@pytest.mark.parametrize(
    ("error", "exit_reason"),
    [
        (DamagedLogError("a batch does not check"), ExitReason.DAMAGED),
        (OSError(errno.EIO, "the disk is gone"), ExitReason.DISK_FAILED),
    ],
)
async def test_a_read_that_fails_is_answered_by_nobody_and_ends_the_node(
    open_stack: Open, error: Exception, exit_reason: ExitReason
) -> None:
    stack = await open_stack()

    def fail() -> None:
        raise error

    answer = stack.driver.access.read("a read of a test", fail)
    assert await asyncio.wait_for(stack.ended, 60) is exit_reason
    await eventually(answer.cancelled)


async def test_a_look_beside_everything_else_tells_what_it_finds(open_stack: Open) -> None:
    access = (await open_stack()).driver.access
    assert await asyncio.wait_for(access.read_detached("a look of a test", lambda: 7), 60) == 7
