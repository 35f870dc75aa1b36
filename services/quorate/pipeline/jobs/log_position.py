"""Parses a position in the log: an offset or an ISO 8601 time."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Final, TypeAlias

LogPosition: TypeAlias = int | datetime
_OFFSET_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = len(str(_OFFSET_MAX))


def parse_position(text: str) -> LogPosition:
    """Parse an offset, or an ISO 8601 time (UTC by default), as a flag's type."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    if is_number and int(text) <= _OFFSET_MAX:
        return int(text)
    try:
        at = datetime.fromisoformat(text)
        # With a zone, a time with a four-digit year may be out of range in UTC.
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment: give an offset, or a time as 2026-01-31T12:00:00Z"
        ) from None


def format_position(at: LogPosition) -> str:
    """Format a position for messages."""
    return f"offset {at}" if isinstance(at, int) else at.isoformat()


def comes_before(one: LogPosition, other: LogPosition) -> bool:
    """True if `one` is earlier; False for an offset and a time, which only a log can compare."""
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    return isinstance(one, datetime) and isinstance(other, datetime) and one < other
