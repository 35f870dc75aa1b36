"""A moment of a log as a flag names it: an offset, or a time."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Final, TypeAlias

Moment: TypeAlias = int | datetime
_OFFSET_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = len(str(_OFFSET_MAX))


def moment(text: str) -> Moment:
    """An offset, or an ISO 8601 time (UTC unless it says otherwise), as a flag's type."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    if is_number and int(text) <= _OFFSET_MAX:
        return int(text)
    try:
        at = datetime.fromisoformat(text)
        # A zone can put what has four digits for its year out of what a time can be in UTC.
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment: give an offset, or a time as 2026-01-31T12:00:00Z"
        ) from None


def worded(at: Moment) -> str:
    """A moment as people write it."""
    return f"offset {at}" if isinstance(at, int) else at.isoformat()


def comes_before(one: Moment, other: Moment) -> bool:
    """True if the first is the earlier. Only a log can compare an offset with a time."""
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    return isinstance(one, datetime) and isinstance(other, datetime) and one < other
