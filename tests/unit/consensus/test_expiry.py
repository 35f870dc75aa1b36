from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from quorate.consensus.expiry import Expiry

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Decider:
    """A controller of which only the sessions are left; time stands still unless it is set."""

    wake_at_ms: int | None = None
    is_active: bool = True
    ending: None = None
    asked_ms: list[int] = field(default_factory=list)
    renewed_ms: list[int] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def expire(self, now_ms: int) -> None:
        self.asked_ms.append(now_ms)
        self.wake_at_ms = None
        self.asked.set()

    def renew_sessions(self, now_ms: int) -> None:
        self.renewed_ms.append(now_ms)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the time that the expiry reads."""

    def set_ms(now_ms: int) -> None:
        monkeypatch.setattr("quorate.consensus.expiry.monotonic_ms", lambda: now_ms)

    set_ms(1000)
    return set_ms


def expiry_of(decider: Any) -> Expiry:  # noqa: ANN401 - a stand-in for driver and controller
    return Expiry(decider, decider, lambda _: None, pause_ms=3000)


@pytest.mark.parametrize(("fires_at_ms", "renewed"), [(4000, []), (4001, [4001])])
async def test_sessions_begin_anew_after_a_pause_in_which_nobody_was_heard(
    clock: Callable[[int], None], fires_at_ms: int, renewed: list[int]
) -> None:
    decider = Decider(wake_at_ms=1000)
    expiry_of(decider).arm()
    clock(fires_at_ms)
    await decider.asked.wait()
    assert (decider.asked_ms, decider.renewed_ms) == ([fires_at_ms], renewed)


@pytest.mark.usefixtures("clock")
async def test_the_earliest_time_counts() -> None:
    decider = Decider(wake_at_ms=1_000_000)
    expiry = expiry_of(decider)
    expiry.arm()
    decider.wake_at_ms = 0
    expiry.arm()
    decider.wake_at_ms = 2_000_000
    expiry.arm()
    await decider.asked.wait()
    assert decider.asked_ms == [1000]


@pytest.mark.usefixtures("clock")
async def test_who_does_not_lead_any_more_decides_nothing() -> None:
    decider = Decider(wake_at_ms=0)
    expiry = expiry_of(decider)
    expiry.arm()
    expiry.stop()
    expiry.arm()
    decider.is_active = False
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    assert decider.asked_ms == []
