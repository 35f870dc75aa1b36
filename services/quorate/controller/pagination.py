"""Page limits, and rejection of results that do not fit into one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from _typeshed import SupportsRichComparisonT as C

    from quorate.controller.slices import Slices

# Items examined per event-loop iteration; fewer if each is authorized, which takes much longer.
SCANNED_MAX: Final = 1_000
JUDGED_MAX: Final = 200


def page_limit(asked: int, limit: int, *, field: str) -> int:
    """The largest number of items on a page. Raises RefusedError for a negative number."""
    if asked < 0:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"{field} is {asked}; give 1 or more.")
    return min(asked or limit, limit)


def reject_multiple_pages(asked: int, limit: int, *, field: str) -> None:
    """Reject a result of several pages for a caller without paging. Raises RefusedError."""
    if not asked:
        message = f"The answer has more than one page of {limit}; set {field} and ask for each."
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)


def take_in_slices(
    items: Iterable[C], start: C, count: int, accepts: Callable[[C], bool] | None = None
) -> Slices[list[C]]:
    """The first `count` accepted items from `start` on, sorted, with pauses.

    Sorting all items for each page would take much longer.
    """
    in_a_turn = SCANNED_MAX if accepts is None else JUDGED_MAX
    found: list[C] = []
    # Once there are enough, items after the last one are skipped.
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
