"""Runs long work on the event loop in time slices, with pauses in proportion.

If a slice only yielded for one event-loop iteration, anything that takes a dozen iterations (a
call, an election) would wait for a dozen slices. So a pause lasts until other tasks have used their
share of the thread's time, however fast the machine is and however large a unit of the work was. It
ends early once the others leave the loop idle. Time is CPU time: on a machine that is busy with
other processes work takes longer in wall-clock time, and pauses would grow with it.
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
# While serving: a quarter of the loop at most. Before serving: most of it.
BACKGROUND_SHARE: Final = 0.25
LOADING_SHARE: Final = 0.8

# Seconds between two measurements of a pause. If other tasks used less than this fraction of it,
# the loop can handle all of their work in parallel with ours.
STEP_S: Final = 0.001
_BUSY_SHARE: Final = 0.5
# Seconds; a shorter pause is skipped.
_NOTHING_S: Final = 0.0001
# Seconds; an iteration in which no other task ran takes less. Work that arrives in one iteration
# may be done in the next.
_EMPTY_TURN_S: Final = 0.00005
_EMPTY_TURNS: Final = 2

# A call of our own transport waits for its turn before each step (h2/fair_queue.py): its slices are
# as short as a turn, and it may use half of the loop while others are quiet.
_CALL_SLICE_S: Final = BUDGET_S
_CALL_SHARE: Final = 0.5


class TimeSlicer:
    """Call `yield_if_due` after every small unit of work; it pauses when a slice is over."""

    def __init__(
        self,
        share: float,
        *,
        slice_s: float = SLICE_S,
        steps_aside: bool = False,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`share` is the fraction of the time that the work may take, above 0, at most 1.

        Work that `steps_aside` only yields to other tasks: clients wait for it, and it does not
        wait for them. `clock` returns the CPU time of the thread.
        """
        self._pause_factor = 1 / share - 1
        self._slice_s = slice_s
        self._steps_aside = steps_aside
        self._clock = clock
        self._began = clock()

    async def yield_if_due(self) -> None:
        """Return immediately within a slice; after one, pause in proportion to its duration."""
        worked_s = self._clock() - self._began
        if worked_s >= self._slice_s:
            pause = self._step_aside if self._steps_aside else self._pause
            await pause(worked_s * self._pause_factor)
            self._began = self._clock()

    async def _pause(self, left_s: float) -> None:
        """Sleep until other tasks have used `left_s`, or less than they could have."""
        while True:
            step_s, begun_s = min(left_s, STEP_S), self._clock()
            await asyncio.sleep(step_s)
            used_s = self._clock() - begun_s
            left_s -= used_s
            if left_s < _NOTHING_S or used_s < step_s * _BUSY_SHARE:
                return

    async def _step_aside(self, left_s: float) -> None:
        """Yield until other tasks have used `left_s`, or have nothing to do."""
        empty = 0
        while True:
            begun_s = self._clock()
            await asyncio.sleep(0)
            used_s = self._clock() - begun_s
            left_s -= used_s
            empty = empty + 1 if used_s < _EMPTY_TURN_S else 0
            if left_s <= 0 or empty >= _EMPTY_TURNS:
                return

    async def run(self, slices: Slices[T]) -> T:
        """Run the slices to the end, each as a unit of work; their errors are raised here."""
        while True:
            try:
                next(slices)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.yield_if_due()


def serving_pace(clock: Callable[[], float] = time.thread_time) -> TimeSlicer:
    """Create the pace of work that a client's call waits for."""
    if CURRENT_FLOW.get() is None:
        return TimeSlicer(BACKGROUND_SHARE, clock=clock)
    return TimeSlicer(_CALL_SHARE, slice_s=_CALL_SLICE_S, clock=clock)
