"""Clocks, randomness and disk threads of this machine; replaced by the simulator.

The code that drives the core takes these from a `Host` only, so that it runs unchanged on a
simulated machine. The event loop is not part of it: that is the running one.
"""

from __future__ import annotations

import gc
import random
import time
from typing import TYPE_CHECKING

from quorate.records.ids import Millis
from quorate.server.disk.executor import ThreadDiskExecutor

if TYPE_CHECKING:
    from quorate.raft.api import Random
    from quorate.server.disk.executor import DiskCallTracker, DiskExecutor


class Host:
    """The real machine on which this process runs."""

    def __init__(self) -> None:
        self.random: Random = random.SystemRandom()

    def monotonic_ms(self) -> Millis:
        """The core's clock, in milliseconds."""
        return Millis(time.monotonic_ns() // 1_000_000)

    def wall_ms(self) -> int:
        """The wall-clock time for records, in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def work_s(self) -> float:
        """A clock in seconds for measuring durations, in any thread; its origin is arbitrary."""
        return time.perf_counter()

    def cpu_s(self) -> float:
        """CPU time of this thread in seconds, the basis for shares of the loop.

        By any other clock work seems to take longer on a machine that is busy with other processes.
        """
        return time.thread_time()

    def collect_garbage(self) -> None:
        """Run a garbage collection; called by code that replaces many objects."""
        gc.collect()

    def disk_queue(self, name: str, calls: DiskCallTracker) -> DiskExecutor:
        """Start a thread for disk calls. Raises RuntimeError if the system has no more threads."""
        return ThreadDiskExecutor(name, calls)
