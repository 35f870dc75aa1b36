"""A moment of a log as a flag names it: an offset, or a time."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Final, TypeAlias

Moment: TypeAlias = int | datetime
_OFFSET_MAX: Final = (1 << 63) - 1


def moment(text: str) -> Moment:
    """An offset, or an ISO 8601 time (UTC unless it says otherwise), as a flag's type."""
    if text.isascii() and text.isdigit() and int(text) <= _OFFSET_MAX:
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment: give an offset, or a time as 2026-01-31T12:00:00Z"
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def worded(at: Moment) -> str:
    """A moment as people write it."""
    return f"offset {at}" if isinstance(at, int) else at.isoformat()
