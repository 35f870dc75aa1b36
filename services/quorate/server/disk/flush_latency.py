"""Recent flush latencies, their quantiles, and the slow-disk warning."""

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
# Seconds: from a disk with a power-safe cache to one that too many processes share.
FLUSH_BOUNDS_S: Final = (
    *(0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01),
    *(0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)


class FlushLatency:
    """Latencies in seconds; a thread adds them, the event loop reads them."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=_KEPT)
        self.durations = Histogram(FLUSH_BOUNDS_S)
        self.count = 0
        self.is_fast = False

    def measure(self, flush: Callable[[], None]) -> None:
        """Run a flush and add its latency."""
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
        """The latency that this share of the recent flushes did not exceed; 0 if there are none."""
        durations = sorted(self._recent.copy())
        if not durations:
            return 0.0
        return durations[min(len(durations) - 1, int(quantile * len(durations)))]

    def warning(self, fetch_timeout_ms: int) -> str | None:
        """Return a warning if p99 is over a quarter of the fetch timeout, otherwise None."""
        p99_ms = self.quantile_s(0.99) * 1000
        if len(self._recent) < _ENOUGH or p99_ms <= fetch_timeout_ms / 4:
            return None
        return (
            f"the disk is slow: 99 of 100 flushes take up to {p99_ms:.0f} ms, more than a quarter "
            f"of controller.quorum.fetch.timeout.ms ({fetch_timeout_ms}). Use a faster disk for "
            "metadata.log.dir, or raise the timeout on all controllers"
        )
