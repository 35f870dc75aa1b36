"""Backoff with jitter between attempts, never past the deadline."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from quorate.raft.backoff import backoff_ms
from quorate.records.field_limits import INT32_MAX

RETRY_FIRST_MS: Final = 50
RETRY_LONGEST_MS: Final = 500
# A healthy server may fail to answer in less time (seconds): the error before it counts.
ATTEMPT_MIN_S: Final = 0.2
_RANDOM: Final = random.SystemRandom()


def wait_s(count: int) -> float:
    """The wait after that many failures in a row."""
    wait_ms = backoff_ms(
        count, first_ms=RETRY_FIRST_MS, longest_ms=RETRY_LONGEST_MS, random=_RANDOM
    )
    return wait_ms / 1000


def told_ms(seconds: float) -> int:
    """A time limit for a request, in milliseconds, limited to the range of its field."""
    return min(INT32_MAX, int(seconds * 1000))


class Backoff:
    """The waits of one call until its deadline, by the clock of the loop."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._count = 0

    @property
    def left_s(self) -> float:
        """The time until the deadline, negative after it."""
        return self.deadline - asyncio.get_running_loop().time()

    async def wait(self) -> bool:
        """Wait; False when no time is left."""
        self._count += 1
        await asyncio.sleep(max(0.0, min(wait_s(self._count), self.left_s)))
        return self.left_s > 0
