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

# Ends with the result; the driving loop lets others run at each yield, or at some of them.
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
    """All items in order, with a None for each part that was sorted.

    Sorting a hundred thousand together takes a tenth of a second, in which no other task runs.
    """
    left = iter(items)
    parts = []
    while part := list(islice(left, SORTED_TOGETHER_MAX)):
        part.sort(reverse=True)
        parts.append(part)
        yield None
    yield from merge(*map(_taken, parts))


def _taken(part: list[C]) -> Iterator[C]:
    """From the end, so that none is left to be freed with all the others in the end."""
    while part:
        yield part.pop()
