"""Share of time the event-loop thread is idle (Kafka's poll-idle-ratio).

Near 1 the loop has nothing to do; near 0 it limits what this controller can handle. It costs two
clock reads a second. A loop that waits for the disk in place does not count as busy here;
`LoopWatchdog` reports that.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Samples, one a second: Kafka averages over half a minute, too.
_KEPT: Final = 31


class LoopIdleRatio:
    """The last half minute of the thread that calls `sample`; any thread may read it."""

    def __init__(
        self,
        wall_s: Callable[[], float] = time.monotonic,
        busy_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._wall_s, self._busy_s = wall_s, busy_s
        self._looks: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def sample(self) -> None:
        """Take a sample; called about once a second, on the loop."""
        self._looks.append((self._wall_s(), self._busy_s()))

    @property
    def ratio(self) -> float:
        """From 0 for never idle to 1 for always idle; 1 before there are two samples."""
        looks = self._looks.copy()
        if len(looks) <= 1:
            return 1.0
        (began_s, busy_began_s), (now_s, busy_now_s) = looks[0], looks[-1]
        lasted_s = now_s - began_s
        return 1.0 if lasted_s <= 0 else max(0.0, 1 - (busy_now_s - busy_began_s) / lasted_s)
