"""Delta debugging (ddmin) on lists, and bisection on numbers.

Makes a list smaller as long as a property of it holds. Large parts are left out first, then smaller
ones, finally single elements, repeatedly until none can be removed (Zeller and Hildebrandt,
"Simplifying and Isolating Failure-Inducing Input"). The caller provides the property and the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")


class OutOfTime(Exception):
    """Raised by a judge: what was found so far has to do."""


def without_groups(
    parts: Sequence[T],
    groups: Iterable[Callable[[T], bool]],
    holds: Callable[[Sequence[T]], bool],
) -> Sequence[T]:
    """Leave out all that belongs to a group, each group by itself, where it still holds."""
    for belongs in groups:
        fewer = [part for part in parts if not belongs(part)]
        if len(fewer) < len(parts) and holds(fewer):
            parts = fewer
    return parts


def ddmin(parts: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """A part of `parts`, in its order, of which nothing can be left out any more."""
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
    """From the end: what came late matters least for how the rest goes."""
    end = len(parts)
    while end > 0:
        start = max(0, end - size)
        fewer = [*parts[:start], *parts[end:]]
        if holds(fewer):
            parts = fewer
        end = start
    return parts


def bisect_min(value: int, holds: Callable[[int], bool], *, at_least: int = 0) -> int:
    """A number as small as it may be, found by halving; what holds for one may not for less."""
    low, high = at_least, value
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high
