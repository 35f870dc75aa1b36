"""How long flushes of the log take, over the most recent ones."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from quorate.telemetry.histograms import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

FAST_S: Final = 0.0005
_KEPT: Final = 256
_ENOUGH: Final = 16
_JUDGED_EVERY: Final = 16
# From a disk with a cache that outlives power to one that is shared with too many.
FLUSH_BOUNDS_S: Final = (
    *(0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01),
    *(0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)


class FlushTimes:
    """Durations in seconds; a thread adds them, the event loop asks."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=_KEPT)
        self.durations = Histogram(FLUSH_BOUNDS_S)
        self.count = 0
        self.is_fast = False

    def measure(self, flush: Callable[[], None]) -> None:
        """Run a flush and note how long it took."""
        start = self._clock()
        flush()
        self.add(self._clock() - start)

    def add(self, duration_s: float) -> None:
        self._recent.append(duration_s)
        self.durations.observe(duration_s)
        self.count += 1
        if self.count % _JUDGED_EVERY == 0:
            self.is_fast = self.quantile_s(0.5) < FAST_S

    def quantile_s(self, quantile: float) -> float:
        """The duration that this share of the recent flushes did not exceed; 0 for none."""
        durations = sorted(self._recent.copy())
        if not durations:
            return 0.0
        return durations[min(len(durations) - 1, int(quantile * len(durations)))]

    def warning(self, fetch_timeout_ms: int) -> str | None:
        """What to tell the operator when p99 is over a quarter of the fetch timeout."""
        p99_ms = self.quantile_s(0.99) * 1000
        if len(self._recent) < _ENOUGH or p99_ms <= fetch_timeout_ms / 4:
            return None
        return (
            f"the disk is slow: 99 of 100 flushes take up to {p99_ms:.0f} ms, more than a quarter "
            f"of controller.quorum.fetch.timeout.ms ({fetch_timeout_ms}). Use a faster disk for "
            "metadata.log.dir, or raise the timeout on all controllers"
        )
