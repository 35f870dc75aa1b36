"""What the active controller decides without being asked: when, and how it goes into the log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.consensus.driver import monotonic_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.consensus.driver import RaftDriver
    from quorate.controller.controller import Controller
    from quorate.controller.decision import Decision


class Expiry:
    """The timer of the brokers' sessions, and of what follows when one ends."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        accept: Callable[[Decision], None],
        *,
        pause_ms: int,
    ) -> None:
        """A timer that fires `pause_ms` late tells of a pause, after which sessions start anew."""
        self._driver = driver
        self._controller = controller
        self._accept = accept
        self._pause_ms = pause_ms
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    def arm(self) -> None:
        """See to it that nothing is decided later than it should be."""
        wake_ms = self._controller.wake_at_ms
        if wake_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= wake_ms:
                return
            self._timer.cancel()
        now_ms = monotonic_ms()
        self._timer_ms = max(wake_ms, now_ms)
        self._timer = self._loop.call_later((self._timer_ms - now_ms) / 1000, self._expire)

    def stop(self) -> None:
        """Leadership is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if not self._controller.is_active or self._driver.ending is not None:
            return
        now_ms = monotonic_ms()
        if now_ms - self._timer_ms > self._pause_ms:
            self._controller.renew_sessions(now_ms)
        decision = self._controller.expire(now_ms)
        if decision is not None:
            self._accept(decision)
        self.arm()
