"""Answers in pages: how long one is, and what becomes of a client that knows of none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from _typeshed import SupportsRichComparisonT as C

    from quorate.controller.slices import Slices

# Looked at in one turn of the loop; less where each is judged, which takes far longer.
SCANNED_MAX: Final = 1_000
JUDGED_MAX: Final = 200


def page_limit(asked: int, limit: int, *, field: str) -> int:
    """How many items a page has at most. Raises RefusedError for what is no number of items."""
    if asked < 0:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"{field} is {asked}; give 1 or more.")
    return min(asked or limit, limit)


def refuse_more(asked: int, limit: int, *, field: str) -> None:
    """There is more than a page, and the caller may not know of pages. Raises RefusedError."""
    if not asked:
        message = f"The answer has more than one page of {limit}; set {field} and ask for each."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)


def first_in_slices(
    items: Iterable[C], start: C, count: int, accepts: Callable[[C], bool] | None = None
) -> Slices[list[C]]:
    """The first `count` from `start` on that are accepted, with pauses.

    To sort all of them for each page would take far longer.
    """
    in_a_turn = SCANNED_MAX if accepts is None else JUDGED_MAX
    found: list[C] = []
    # Once there are enough, what comes after the last of them is looked at no closer.
    last: C | None = None
    for number, item in enumerate(items, 1):
        is_among = start <= item and (last is None or item < last)  # type: ignore[operator]
        if is_among and (accepts is None or accepts(item)):
            found.append(item)
        if number % in_a_turn == 0:
            found.sort()
            if len(found) > count:
                del found[count:]
                last = found[-1]
            yield
    return sorted(found)[:count]
