"""Discrete-event queue of the simulation and its clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final, TypeAlias

from quorate.sim.checkers.oracle import Violation

Callback: TypeAlias = Callable[[], None]
STEPS_AT_ONE_INSTANT: Final = 5000
# Forty times the steps of the longest runs.
STEPS_MAX: Final = 2_000_000


class EventQueue:
    """A heap of (time, sequence, callback). Time is an integer in microseconds.

    `steps` is the number of callbacks run so far.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self.steps = 0
        self._heap: list[tuple[int, int, Callback]] = []
        self._sequence = 0
        self._stuck = 0

    def schedule(self, delay_us: int, action: Callback) -> None:
        """Schedule `action` after `delay_us` microseconds."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now_us + max(0, delay_us), self._sequence, action))

    def run(self, until_ms: int, *, stop: Callable[[], bool] | None = None) -> bool:
        """Advance simulated time; True if `stop` became true before `until_ms`."""
        limit = until_ms * 1000
        while self._heap and self._heap[0][0] <= limit:
            at, _, action = heapq.heappop(self._heap)
            self._stuck = self._stuck + 1 if at == self.now_us else 0
            if self._stuck > STEPS_AT_ONE_INSTANT:
                raise Violation("time stands still: a core asks for wake-ups without end")
            self.now_us = at
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise Violation("this world never ends: something goes on and on")
            action()
            if stop is not None and stop():
                return True
        self.now_us = max(self.now_us, limit)
        return False
