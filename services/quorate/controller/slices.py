"""Generators that yield between time slices of long work, and helpers to run them."""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from _typeshed import SupportsRichComparisonT as C

T = TypeVar("T")
SORTED_TOGETHER_MAX: Final = 2_000

# Returns the result; the loop that runs it lets other tasks run at some or all yields.
Slices: TypeAlias = "Generator[None, None, T]"


def run_to_end(slices: Slices[T]) -> T:
    """Run all slices without yielding."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


def sorted_in_slices(items: Iterable[C]) -> Iterator[C | None]:
    """All items in sorted order, with a None as a pause after each part is sorted.

    Sorting 100,000 items in one step takes 0.1 s, during which no other task runs.
    """
    left = iter(items)
    parts = []
    while part := list(islice(left, SORTED_TOGETHER_MAX)):
        part.sort(reverse=True)
        parts.append(part)
        yield None
    yield from merge(*map(_taken, parts))


def _taken(part: list[C]) -> Iterator[C]:
    """Remove and yield items from the end, so that they are not all freed in one step."""
    while part:
        yield part.pop()
