"""The clock by which brokers' silence is judged: it stands while the event loop does.

What came while the loop stood is read in the turns that follow, which may take as long again. A
broker is judged by an earlier time until then, and at all times by one that is a last call earlier
than now. After a long pause, in which brokers may have given up, sessions begin again.
"""

from __future__ import annotations

from typing import Final

# How often the loop is looked at.
TICK_MS: Final = 50
# What has come by a time is read within so long, unless the loop stood.
LAST_CALL_MS: Final = 50


class SilenceClock:
    """The time by which silence is judged, of a loop that is looked at every `TICK_MS` or sooner.

    However often the loop stands, that time is behind by two pauses and a last call at most, at the
    moment of a look.
    """

    def __init__(self, now_ms: int, *, pause_ms: int) -> None:
        """The loop that stood for more than `pause_ms` has paused."""
        self._pause_ms = pause_ms
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """The loop turns now, and is looked at from here on."""
        # The clock stands at the first of these times until the second.
        self._looked_ms = self._stands_ms = self._until_ms = now_ms

    def look(self, now_ms: int) -> bool:
        """Note for how long the loop stood; whether that was a pause."""
        before_ms, self._looked_ms = self._looked_ms, now_ms
        stood_ms = now_ms - before_ms - TICK_MS
        if stood_ms > self._pause_ms:
            self._until_ms = now_ms
            return True
        # After a shorter one the last call suffices; timers are always a little late.
        if stood_ms > LAST_CALL_MS:
            if before_ms >= self._until_ms:
                self._stands_ms = before_ms
            self._until_ms = max(self._until_ms, now_ms + stood_ms)
        return False

    def time_ms(self, now_ms: int) -> int:
        """The time by which silence is judged now."""
        if now_ms < self._until_ms:
            now_ms = max(self._stands_ms, now_ms - 2 * self._pause_ms)
        return now_ms - LAST_CALL_MS

    def reaches_ms(self, time_ms: int) -> int:
        """The host's time at which this clock reaches `time_ms`, if the loop stalls no more."""
        return max(time_ms + LAST_CALL_MS, self._until_ms)
