"""The clock that measures brokers' silence: it stops while the event loop is blocked.

What arrived while the loop was blocked is read in the following iterations, which may take as long
again. Until then silence is measured at an earlier time, and at all times at one that is
`LAST_CALL_MS` before now. After a long pause, in which brokers may have given up, sessions restart.
"""

from __future__ import annotations

from typing import Final

# Milliseconds between two measurements of the loop.
TICK_MS: Final = 50
# Milliseconds within which arrived requests are read, unless the loop was blocked.
LAST_CALL_MS: Final = 50


class SilenceClock:
    """The time at which silence is measured, for a loop that is measured every `TICK_MS` or sooner.

    However often the loop is blocked, this time lags by at most two pauses and `LAST_CALL_MS` at
    the moment of a measurement.
    """

    def __init__(self, now_ms: int, *, pause_ms: int) -> None:
        """Count a blockage of more than `pause_ms` as a pause."""
        self._pause_ms = pause_ms
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """Start to measure: the loop runs now."""
        # The clock shows `_stands_ms` until `_until_ms`.
        self._looked_ms = self._stands_ms = self._until_ms = now_ms

    def look(self, now_ms: int) -> bool:
        """Measure for how long the loop was blocked; True if that was a pause."""
        before_ms, self._looked_ms = self._looked_ms, now_ms
        stood_ms = now_ms - before_ms - TICK_MS
        if stood_ms > self._pause_ms:
            self._until_ms = now_ms
            return True
        # After a shorter blockage `LAST_CALL_MS` is enough; timers are always a little late.
        if stood_ms > LAST_CALL_MS:
            if before_ms >= self._until_ms:
                self._stands_ms = before_ms
            self._until_ms = max(self._until_ms, now_ms + stood_ms)
        return False

    def time_ms(self, now_ms: int) -> int:
        """The time at which silence is measured now, in milliseconds."""
        if now_ms < self._until_ms:
            now_ms = max(self._stands_ms, now_ms - 2 * self._pause_ms)
        return now_ms - LAST_CALL_MS

    def reaches_ms(self, time_ms: int) -> int:
        """The host's time at which this clock reaches `time_ms`, without further blockages."""
        return max(time_ms + LAST_CALL_MS, self._until_ms)
