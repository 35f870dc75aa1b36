"""A clock that advances only during sleeps."""

from __future__ import annotations

import asyncio

import pytest


class Clock:
    """The clock of the loop."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that does not depend on how busy the machine is."""
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    return clock
