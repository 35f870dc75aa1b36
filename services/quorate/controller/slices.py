"""Long work that is cut into slices: each yield is a place where others may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")

# Ends with the result; the driving loop lets others run at each yield, or at some of them.
Slices: TypeAlias = "Generator[None, None, T]"


def finish(slices: Slices[T]) -> T:
    """Do it all at once."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
