"""What a controller takes from the machine below it: clocks, chance, threads that wait for disks.

Whatever drives the core is handed these, and takes none itself, so that it can run as it is on a
machine that is simulated. The event loop needs no word here: it is the one that runs.
"""

from __future__ import annotations

import gc
import random
import time
from typing import TYPE_CHECKING

from quorate.records.ids import Millis
from quorate.server.disk.executor import DiskThread

if TYPE_CHECKING:
    from quorate.raft.api import Random
    from quorate.server.disk.executor import DiskCalls, DiskQueue


class Host:
    """The machine on which this process really runs."""

    def __init__(self) -> None:
        self.random: Random = random.SystemRandom()

    def monotonic_ms(self) -> Millis:
        """The core's clock."""
        return Millis(time.monotonic_ns() // 1_000_000)

    def wall_ms(self) -> int:
        """The time for records."""
        return time.time_ns() // 1_000_000

    def work_s(self) -> float:
        """A clock for how long something took, in any thread; where it begins means nothing."""
        return time.perf_counter()

    def cpu_s(self) -> float:
        """A clock that runs while this thread does: shares of the loop go by it.

        By any other clock work seems to take longer on a machine that is busy with others.
        """
        return time.thread_time()

    def collect_garbage(self) -> None:
        """Let the interpreter look for circles; code that replaces much asks for it."""
        gc.collect()

    def disk_queue(self, name: str, calls: DiskCalls) -> DiskQueue:
        """A thread for calls to the disk. Raises RuntimeError where the system has no more."""
        return DiskThread(name, calls)
