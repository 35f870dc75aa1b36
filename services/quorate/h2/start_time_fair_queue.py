"""Turns by used time: of those that have work, the one that used the least is first.

This is start-time fair queueing. Nothing here tells what a turn is or how long it takes: the
caller charges for each turn afterwards.
"""

from __future__ import annotations

import itertools
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar


class Share(Protocol):
    """One of those, and the time that it has used; its turns own the number."""

    used_s: float


S = TypeVar("S", bound=Share)


class Turns(Generic[S]):
    """Those that have work, the one with the least used time first."""

    __slots__ = ("_count", "_heap", "now_s")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, S]] = []
        self._count = itertools.count()
        # The used time of the last one that had its turn: idle time is not saved up.
        self.now_s = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def clear(self) -> None:
        """None of them has work; what each has used still counts."""
        self._heap.clear()

    def add(self, one: S) -> None:
        """It has work from now on."""
        one.used_s = max(one.used_s, self.now_s)
        heappush(self._heap, (one.used_s, next(self._count), one))

    def first(self) -> S:
        """The one whose turn is next."""
        while True:
            used_s, _, one = self._heap[0]
            if used_s >= one.used_s:
                return one
            # It was charged while it waited.
            heappop(self._heap)
            self.add(one)

    def take(self, one: S) -> None:
        """Give its turn to the first one, which has work no more until it is added again."""
        heappop(self._heap)
        self.now_s = max(self.now_s, one.used_s)

    def charge(self, one: S, seconds: float, debt_max_s: float) -> None:
        """Count what it used; it is never behind the others by more than `debt_max_s`."""
        one.used_s = min(max(one.used_s, self.now_s) + seconds, self.now_s + debt_max_s)
