"""Durations counted by size: one bisection and two additions for each, whoever reads them.

prometheus_client's own take a lock and walk their buckets, which costs ten times as much; here one
thread observes, and scrapes read what it has counted so far.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Histogram:
    """Observations below each of some bounds. One thread adds them, any may read."""

    __slots__ = ("_bounds", "_counts", "_labels", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """`bounds` rise; what is above the last one is counted, too."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._labels = (*(f"{bound:g}" for bound in bounds), "+Inf")
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one; a bound belongs to what is below it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound as Prometheus writes it, and how many were not above it."""
        # Copied in one piece: the totals of one scrape agree with each other.
        return zip(self._labels, accumulate(self._counts.copy()), strict=True)
