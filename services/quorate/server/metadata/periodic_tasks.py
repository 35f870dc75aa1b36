"""Runs what the active controller decides without a request, such as fencing silent brokers.

Fencing a broker may concern every partition. It is decided in slices of a few milliseconds, one
decision each. The next decision waits until the last one is committed, so that the quorum is never
behind by more than one, and clients' writes go in between.

A broker may seem silent because this process was blocked. A tick measures how long the event loop
was blocked, whatever else is awaited, and silence is measured by a clock that stops for that time
(server/metadata/session_clock.py). After a long pause all sessions restart, and a broker whose
heartbeat waits for its decision does not count as silent.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from quorate.controller.controller import AT_ONCE_MS
from quorate.raft.backoff import backoff_ms
from quorate.server.metadata.session_clock import TICK_MS, SilenceClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.controller import Controller
    from quorate.controller.decision import Decision
    from quorate.records.ids import Offset
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.server.metadata.decision_queue import DecisionQueue

# Milliseconds after which a new leader sweeps what its predecessor may have left undone. Writers
# that have waited since the last leader failed take precedence.
SWEEP_AFTER_MS: Final = 100
# Backoff in milliseconds after a failed decision; the next write may remove the cause.
AGAIN_FIRST_MS: Final = 100
AGAIN_LONGEST_MS: Final = 10_000
log = logging.getLogger(__name__)


class PeriodicTasks:
    """The timer of everything that is due without a request."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        waiting: DecisionQueue,
        accept: Callable[[Decision], None],
        *,
        pause_ms: int,
    ) -> None:
        """Restart all sessions after the loop was blocked for more than `pause_ms`."""
        self._driver = driver
        self._controller = controller
        self._waiting = waiting
        self._accept = accept
        self._clock = SilenceClock(driver.host.monotonic_ms(), pause_ms=pause_ms)
        self._loop = asyncio.get_running_loop()
        self._ticking: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._begins_ms = 0
        # Whether the timer has fired during a decision.
        self._is_held_up = False
        self._failures = 0
        self._awaited: Offset | None = None
        self.errors = 0

    def begin(self, now_ms: int) -> None:
        """Start: the controller became active at `now_ms`, and all sessions began."""
        self.stop()
        self._begins_ms = now_ms + SWEEP_AFTER_MS
        self._clock.begin(now_ms)
        self._set_tick()
        self.arm()

    def committed(self, high_watermark: Offset) -> None:
        """Take the new high watermark, and continue if it covers the last slice."""
        if self._awaited is not None and self._awaited <= high_watermark:
            self._awaited = None
            self.arm()

    def arm(self) -> None:
        """Set the timer so that nothing is decided later than it is due."""
        wake_ms = self._controller.wake_at_ms
        if wake_ms is None or self._awaited is not None:
            return
        due_ms = wake_ms if wake_ms == AT_ONCE_MS else self._clock.reaches_ms(wake_ms)
        due_ms = max(due_ms, self._begins_ms)
        if self._timer is not None:
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        now_ms = self._driver.host.monotonic_ms()
        self._timer_ms = max(due_ms, now_ms)
        self._timer = self._loop.call_later((self._timer_ms - now_ms) / 1000, self._due)

    def _set_tick(self) -> None:
        self._ticking = self._loop.call_later(TICK_MS / 1000, self._tick)

    def _tick(self) -> None:
        self.look()
        self._set_tick()

    def look(self) -> int:
        """Measure for how long the loop was blocked; return the time of the host."""
        now_ms = self._driver.host.monotonic_ms()
        if self._clock.look(now_ms) and self._may_decide:
            self._controller.reset_timers(now_ms)
        return now_ms

    def catch_up(self) -> None:
        """Decide what became due during a decision; no decision is in progress now."""
        if self._is_held_up:
            self._expire()
        else:
            self.arm()

    def stop(self) -> None:
        """Stop after loss of leadership; the next active controller finds what was left undone."""
        self._awaited = None
        self._is_held_up = False
        for timer in (self._timer, self._ticking):
            if timer is not None:
                timer.cancel()
        self._timer = self._ticking = None

    def _due(self) -> None:
        """Handle the timer, which may fire before silence can be decided."""
        self._timer = None
        if not self._may_decide:
            return
        time_ms, wake_ms = self._clock.time_ms(self.look()), self._controller.wake_at_ms
        if wake_ms is None or wake_ms > max(time_ms, AT_ONCE_MS):
            self.arm()
            return
        if self._controller.is_deciding:
            self._is_held_up = True
        else:
            self._expire()

    @property
    def _may_decide(self) -> bool:
        driver = self._driver
        return self._controller.is_active and driver.exit_reason is None and not driver.is_stopping

    def _expire(self) -> None:
        self._is_held_up = False
        if not self._may_decide or self._awaited is not None:
            return
        now_ms = self.look()
        try:
            time_ms = self._clock.time_ms(now_ms)
            decision = self._controller.expire(time_ms, self._waiting.senders)
        except Exception as error:
            self._undecided(now_ms, error)
            return
        self._failures = 0
        try:
            if decision is not None and decision.values:
                self._awaited = decision.end_offset
                self._accept(decision)
        except Exception as error:
            # The decision is counted as appended, but its records are in no log: later decisions
            # would rest on them.
            self._driver.fail(error)
            return
        self.arm()

    def _undecided(self, now_ms: int, error: Exception) -> None:
        """Log the failed decision and retry later; nothing was counted as appended."""
        about = {"repeats": ("expiry", type(error))}
        log.error("no decision on what is due", exc_info=error, extra=about)
        self._failures += 1
        self.errors += 1
        wait_ms = backoff_ms(
            self._failures,
            first_ms=AGAIN_FIRST_MS,
            longest_ms=AGAIN_LONGEST_MS,
            random=self._driver.host.random,
        )
        self._begins_ms = now_ms + wait_ms
        self.arm()
