"""What the active controller decides without being asked: when, and how it goes into the log.

Fencing a broker may concern every partition there is. It is decided in slices, each a few
milliseconds and one decision; the next one waits until the last is committed, so that the quorum
is never behind by more than one, and what clients write goes in between.

That a broker was not heard may be this process's own doing. A tick sees how long the loop stood,
whatever else is awaited, and silence is judged by a clock that stood as long
(server/metadata/session_clock.py). After a long pause times begin again, and a broker whose
heartbeat waits for its decision is not silent.
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

# A new leader looks through everything that its predecessor may have left undone. Those who wait
# to write since the last one died go first.
SWEEP_AFTER_MS: Final = 100
# After a decision that could not be made; what stands in its way may change with the next write.
AGAIN_FIRST_MS: Final = 100
AGAIN_LONGEST_MS: Final = 10_000
log = logging.getLogger(__name__)


class Expiry:
    """The timer of all that is due without a request."""

    def __init__(
        self,
        driver: RaftDriver,
        controller: Controller,
        waiting: DecisionQueue,
        accept: Callable[[Decision], None],
        *,
        pause_ms: int,
    ) -> None:
        """Times begin again after a pause of the loop of more than `pause_ms`."""
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
        # Whether the timer has run out during a decision.
        self._is_held_up = False
        self._failures = 0
        self._awaited: Offset | None = None
        self.errors = 0

    def begin(self, now_ms: int) -> None:
        """The controller became active then, and all sessions began."""
        self.stop()
        self._begins_ms = now_ms + SWEEP_AFTER_MS
        self._clock.begin(now_ms)
        self._set_tick()
        self.arm()

    def committed(self, high_watermark: Offset) -> None:
        """Everything below is committed: go on if the last slice is."""
        if self._awaited is not None and self._awaited <= high_watermark:
            self._awaited = None
            self.arm()

    def arm(self) -> None:
        """See to it that nothing is decided later than it should be."""
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
        """Note for how long the loop has stalled; return the time of the host."""
        now_ms = self._driver.host.monotonic_ms()
        if self._clock.look(now_ms) and self._may_decide:
            self._controller.renew(now_ms)
        return now_ms

    def catch_up(self) -> None:
        """No decision is under way just now: decide what was due meanwhile."""
        if self._is_held_up:
            self._expire()
        else:
            self.arm()

    def stop(self) -> None:
        """Leadership is lost; the next active controller finds what was left undone."""
        self._awaited = None
        self._is_held_up = False
        for timer in (self._timer, self._ticking):
            if timer is not None:
                timer.cancel()
        self._timer = self._ticking = None

    def _due(self) -> None:
        """The timer has run out, perhaps before silence can be judged."""
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
        return self._controller.is_active and driver.ending is None and not driver.is_stopping

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
            # Decided, and counted: what follows would rest on records that are in no log.
            self._driver.fail(error)
            return
        self.arm()

    def _undecided(self, now_ms: int, error: Exception) -> None:
        """Nothing was counted as appended. Changes that are due come later than they should."""
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
