"""The one timer of a core."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, copy_context

from quorate.records.ids import Millis
from quorate.server.driver.wakeup_timer import WakeupTimer
from quorate.server.host import Host


class Standing(Host):
    """A machine whose clock is stopped: only timers that are due ring, and immediately."""

    def monotonic_ms(self) -> Millis:
        return Millis(1000)


FAR = Millis(1000 + 3_600_000)
whose: ContextVar[str] = ContextVar("whose", default="the owner's")


class Bell:
    def __init__(self) -> None:
        self.rung: list[str] = []
        self.wakeup_timer = WakeupTimer(
            Standing(), lambda: self.rung.append(whose.get()), copy_context()
        )

    def set(self, wanted_ms: Millis) -> None:
        self.wakeup_timer.deadline_ms = wanted_ms
        self.wakeup_timer.set()

    async def rings(self) -> list[str]:
        """All timers that have rung once no more are due."""
        for _ in range(3):
            await asyncio.sleep(0)
        return self.rung


async def test_what_is_due_rings_once() -> None:
    bell = Bell()
    bell.set(Millis(999))
    assert len(await bell.rings()) == 1
    assert len(await bell.rings()) == 1


async def test_an_earlier_wake_up_takes_the_place_of_a_later_one_and_not_the_reverse() -> None:
    bell = Bell()
    bell.set(FAR)
    bell.set(Millis(1000))
    bell.set(FAR)
    assert len(await bell.rings()) == 1


async def test_an_alarm_that_is_cancelled_does_not_ring_and_may_be_set_anew() -> None:
    bell = Bell()
    bell.set(Millis(1000))
    bell.wakeup_timer.cancel()
    assert await bell.rings() == []
    bell.set(Millis(1000))
    assert len(await bell.rings()) == 1


async def test_it_rings_in_its_own_context_whoever_has_set_it() -> None:
    bell = Bell()
    token = whose.set("a caller's")
    bell.set(Millis(1000))
    assert await bell.rings() == ["the owner's"]
    whose.reset(token)


async def test_nothing_is_wanted_at_first() -> None:
    bell = Bell()
    bell.wakeup_timer.set()
    assert await bell.rings() == []
