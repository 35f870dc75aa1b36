"""Delta debugging (ddmin) on lists, and bisection on numbers.

The functions shrink a list as long as it has a given property. They leave out large parts first,
then smaller ones, finally single elements, until none can be removed (Zeller and Hildebrandt,
"Simplifying and Isolating Failure-Inducing Input"). The caller provides the property and the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")


class OutOfTime(Exception):
    """Raised by the check of a property to end the search with the best result so far."""


def without_groups(
    parts: Sequence[T],
    groups: Iterable[Callable[[T], bool]],
    holds: Callable[[Sequence[T]], bool],
) -> Sequence[T]:
    """Leave out each group of parts separately, if the property still holds without it."""
    for belongs in groups:
        fewer = [part for part in parts if not belongs(part)]
        if len(fewer) < len(parts) and holds(fewer):
            parts = fewer
    return parts


def ddmin(parts: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """A minimal subsequence of `parts` that holds: no single part can be left out."""
    size = len(parts)
    while parts:
        size = max(1, min(size, len(parts)))
        fewer = _without_slices(parts, size, holds)
        if size == 1 and len(fewer) == len(parts):
            return fewer
        parts, size = fewer, size // 2
    return parts


def _without_slices(
    parts: Sequence[T], size: int, holds: Callable[[Sequence[T]], bool]
) -> Sequence[T]:
    """Leave out slices from the end: late parts influence the others least."""
    end = len(parts)
    while end > 0:
        start = max(0, end - size)
        fewer = [*parts[:start], *parts[end:]]
        if holds(fewer):
            parts = fewer
        end = start
    return parts


def bisect_min(value: int, holds: Callable[[int], bool], *, at_least: int = 0) -> int:
    """The smallest number that bisection finds to hold; `holds` need not be monotonic."""
    low, high = at_least, value
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high
