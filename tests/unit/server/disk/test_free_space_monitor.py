from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from quorate.raft import api
from quorate.raft.trace_events import RoleChangeCause
from quorate.server.disk.free_space_monitor import FreeSpaceMonitor
from quorate.server.resource_limits import DiskSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.state_machine import StateMachine

MINIMUM = 100
WARNING = f"{MINIMUM * 4 - 1} bytes free"


class Beside:
    """A disk with `free` bytes, and what the core and the state machine receive about it."""

    def __init__(self, *, is_only_voter: bool = False) -> None:
        self.free = MINIMUM * 4
        self.asked: list[asyncio.Future[str | None]] = []
        self.events: list[api.Event] = []
        self.failures: list[BaseException] = []
        self.told: list[bool] = []
        self.has_ended = False
        self.access = self
        self.core = SimpleNamespace(replica=SimpleNamespace(is_only_voter=is_only_voter))
        self.deliver, self.fail = self.events.append, self.failures.append
        self.space = DiskSpace("/log", MINIMUM)
        self.free_space_monitor = FreeSpaceMonitor(
            self.space,
            cast("RaftDriver", self),
            cast("StateMachine", self),
            lambda: self.has_ended,
        )

    def read_detached(
        self, _what: str, _work: Callable[[], str | None]
    ) -> asyncio.Future[str | None]:
        self.asked.append(asyncio.get_running_loop().create_future())
        return self.asked[-1]

    def set_space(self, *, is_enough: bool) -> None:
        self.told.append(is_enough)

    async def sees(self, free: int) -> None:
        """One look, which the disk answers."""
        self.free_space_monitor.check()
        self.asked[-1].set_result(self.space.evaluate(free))
        await asyncio.sleep(0)


async def test_a_leader_without_room_resigns_once_until_there_is_room_again() -> None:
    beside = Beside()
    for free in (MINIMUM, MINIMUM - 1, MINIMUM - 2, MINIMUM, MINIMUM - 1):
        await beside.sees(free)
    assert beside.told == [True, False, False, True, False]
    reasons = [(type(event), event.cause) for event in beside.events]  # type: ignore[union-attr]
    assert reasons == [(api.ResignRequested, RoleChangeCause.DISK_FULL)] * 2


async def test_a_single_voter_without_room_does_not_resign() -> None:
    beside = Beside(is_only_voter=True)
    await beside.sees(0)
    assert (beside.told, beside.events) == ([False], [])


async def test_a_disk_that_has_not_answered_is_not_asked_again() -> None:
    beside = Beside()
    beside.free_space_monitor.check()
    beside.free_space_monitor.check()
    assert len(beside.asked) == 1
    beside.asked[0].set_result(None)
    await asyncio.sleep(0)
    beside.free_space_monitor.check()
    assert len(beside.asked) == 2


async def test_little_room_is_warned_about_at_first_and_then_each_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    beside = Beside()
    with caplog.at_level(logging.WARNING):
        for looks in range(1, 26):
            await beside.sees(MINIMUM * 4 - 1)
            warnings = [message for message in caplog.messages if WARNING in message]
            assert len(warnings) == 1 + (looks - 1) // 12


async def test_an_error_of_the_disk_ends_the_core_and_after_that_nothing_is_told() -> None:
    beside = Beside()
    for has_ended in (False, True):
        beside.has_ended = has_ended
        beside.free_space_monitor.check()
        beside.asked[-1].set_exception(OSError("gone"))
        await asyncio.sleep(0)
    assert ([str(error) for error in beside.failures], beside.told) == (["gone"], [])
