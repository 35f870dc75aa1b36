"""Escapes text and formats numbers, durations and sizes."""

from __future__ import annotations

import html
from datetime import datetime
from typing import TYPE_CHECKING, Final

from quorate.records.escaping import escape_unprintable

if TYPE_CHECKING:
    from collections.abc import Sequence

CELL_CHARACTERS_MAX: Final = 160
NOTHING: Final = "-"
_IDS_MAX: Final = 8
_STEPS: Final = ((86_400_000, "d", 3_600_000, "h"), (3_600_000, "h", 60_000, "min"))


def escaped(text: str, characters_max: int = CELL_CHARACTERS_MAX) -> str:
    """Escape text as HTML, cut to fit a table; invisible characters are written out."""
    if len(text) > characters_max:
        text = f"{text[: characters_max - 1]}…"
    return html.escape(escape_unprintable(text))


def format_value(value: object) -> str:
    """Format a value of a row as text, not yet escaped."""
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case int():
            return format_int(value)
        case float():
            return f"{value:,.2f}".replace(",", " ")
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case list() | tuple():
            return ", ".join(str(item) for item in value) or "none"
        case _:
            return str(value)


def ids_listed(ids: Sequence[int]) -> str:
    """List the first of some ids."""
    return f"{', '.join(map(str, ids[:_IDS_MAX]))}{', ...' if len(ids) > _IDS_MAX else ''}"


def ids_named(ids: Sequence[int]) -> str:
    """The same after a colon; empty without ids."""
    return f": {ids_listed(ids)}" if ids else ""


def format_int(number: int) -> str:
    """1234567 as 1 234 567."""
    return f"{number:,}".replace(",", "\u202f")


def duration(milliseconds: int) -> str:
    """Format milliseconds as 3 d 4 h, 5 h 6 min, 7 min 8 s, 9.1 s or 10 ms, without line breaks."""
    return _duration(milliseconds).replace(" ", "\xa0")


def _duration(milliseconds: int) -> str:
    if milliseconds < 0:
        return f"-{_duration(-milliseconds)}"
    for size, unit, part, part_unit in _STEPS:
        if milliseconds >= size:
            return f"{milliseconds // size} {unit} {milliseconds % size // part} {part_unit}"
    if milliseconds >= 60_000:
        return f"{milliseconds // 60_000} min {milliseconds % 60_000 // 1000} s"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds} ms"


def size(count: int) -> str:
    """Format bytes as 12 B, 3.4 KiB, 5.6 MiB or 7.8 GiB, without line breaks."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{count}\xa0B" if unit == "B" else f"{amount:.1f}\xa0{unit}"
        amount /= 1024
    return f"{amount:.1f}\xa0GiB"


def share(part: float) -> str:
    """Format a fraction of 1 in percent: 73.4 %, or < 0.1 % for a small one above 0."""
    percent = "< 0.1" if 0 < part < 0.001 else f"{100 * part:.1f}"
    return f"{percent}\xa0%"
