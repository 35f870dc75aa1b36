"""Deals tests to the days of a week: each has its day, and a week has them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

DAYS: Final = 7


def dealt(names: Iterable[str], day: date) -> set[str]:
    """Those of the names whose turn is on this day; as many as on any other, or one more."""
    return {name for i, name in enumerate(sorted(names)) if i % DAYS == day.toordinal() % DAYS}
