"""Time-ordered queue of scheduled callbacks."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    Act: TypeAlias = Callable[[], None]


class Schedule:
    """Callbacks in the order of their times; those of the same time in the order of insertion."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._acts: list[tuple[int, int, Act]] = []
        self._noted = 0

    def at(self, at_ms: int, act: Act) -> None:
        self._noted += 1
        heappush(self._acts, (at_ms, self._noted, act))

    def after(self, wait_ms: int, act: Act) -> None:
        """Schedule a callback `wait_ms` from now."""
        self.at(self._now_ms() + wait_ms, act)

    def next_before(self, end_ms: int) -> tuple[int, Act] | None:
        """Remove the next callback before `end_ms` and return its time and it; None if none."""
        if not self._acts or self._acts[0][0] >= end_ms:
            return None
        at_ms, _, act = heappop(self._acts)
        return at_ms, act
