"""Start-time fair queueing: the participant that has used the least time is next.

The queue does not know what a turn is or how long it takes: the caller charges for each turn
afterwards.
"""

from __future__ import annotations

import itertools
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar


class Share(Protocol):
    """A participant, and the time that it has used; its queue owns the number."""

    used_s: float


S = TypeVar("S", bound=Share)


class StartTimeFairQueue(Generic[S]):
    """The participants that have work; the one with the least used time is first."""

    __slots__ = ("_count", "_heap", "now_s")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, S]] = []
        self._count = itertools.count()
        # The used time of the last participant that had a turn: idle time is not saved up.
        self.now_s = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def clear(self) -> None:
        """Remove all participants; their used time still counts."""
        self._heap.clear()

    def add(self, one: S) -> None:
        """Add a participant that has work."""
        one.used_s = max(one.used_s, self.now_s)
        heappush(self._heap, (one.used_s, next(self._count), one))

    def first(self) -> S:
        """Return the participant whose turn is next."""
        while True:
            used_s, _, one = self._heap[0]
            if used_s >= one.used_s:
                return one
            # The participant was charged while it waited.
            heappop(self._heap)
            self.add(one)

    def take(self, one: S) -> None:
        """Remove the first participant for its turn, until it is added again."""
        heappop(self._heap)
        self.now_s = max(self.now_s, one.used_s)

    def charge(self, one: S, seconds: float, debt_max_s: float) -> None:
        """Charge used time; the participant lags the others by at most `debt_max_s`."""
        one.used_s = min(max(one.used_s, self.now_s) + seconds, self.now_s + debt_max_s)
