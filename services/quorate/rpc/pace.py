"""Long work on the event loop in slices of time, with pauses in which everybody else has turns.

A slice that only steps aside for one turn of the loop makes whatever takes a dozen turns (a call,
an election) wait for a dozen slices. A pause lasts until others have used their share of the
thread's time, however fast the machine is and however large a unit of the work was; it ends early
once the others leave the loop idle. Time is that of the CPU: on a machine that is busy with other
processes work takes longer by the clock on the wall, and pauses would grow with it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.h2.fair_queue import BUDGET_S, CURRENT_FLOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.slices import Slices

T = TypeVar("T")

SLICE_S: Final = 0.004
# Beside what is served: a quarter of the loop at most. Where nothing is served yet: most of it.
SERVING_SHARE: Final = 0.25
LOADING_SHARE: Final = 0.8

# A pause is looked at again and again after so long; others that used less than this part of it
# have no more work than the loop can take on beside ours.
STEP_S: Final = 0.001
_BUSY_SHARE: Final = 0.5
# No pause is as short.
_NOTHING_S: Final = 0.0001

# A call of our own transport waits for its turn before each step (h2/fair_queue.py): its slices
# are as short as a turn, and it may have half of the loop while others are quiet.
_CALL_SLICE_S: Final = BUDGET_S
_CALL_SHARE: Final = 0.5


class Pace:
    """Call `breathe` after every small unit of work; it pauses when a slice is over."""

    def __init__(
        self,
        share: float,
        *,
        slice_s: float = SLICE_S,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`share` is the part of the time that the work may take, above 0, at most 1.

        `clock` tells the time that the thread has used.
        """
        self._pause_factor = 1 / share - 1
        self._slice_s = slice_s
        self._clock = clock
        self._began = clock()

    async def breathe(self) -> None:
        """Go on at once within a slice; after one, pause in proportion to what it really took."""
        worked_s = self._clock() - self._began
        if worked_s >= self._slice_s:
            await self._pause(worked_s * self._pause_factor)
            self._began = self._clock()

    async def _pause(self, left_s: float) -> None:
        """Until others have used so much, or less than they might have."""
        while True:
            step_s, begun_s = min(left_s, STEP_S), self._clock()
            await asyncio.sleep(step_s)
            used_s = self._clock() - begun_s
            left_s -= used_s
            if left_s < _NOTHING_S or used_s < step_s * _BUSY_SHARE:
                return

    async def finish(self, slices: Slices[T]) -> T:
        """Do it to the end, each step a unit of work; what it raises is raised here."""
        while True:
            try:
                next(slices)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.breathe()


def serving_pace(clock: Callable[[], float] = time.thread_time) -> Pace:
    """The pace of work that a client's call waits for."""
    if CURRENT_FLOW.get() is None:
        return Pace(SERVING_SHARE, clock=clock)
    return Pace(_CALL_SHARE, slice_s=_CALL_SLICE_S, clock=clock)
