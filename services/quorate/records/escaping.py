"""Escapes foreign text: names and values may contain terminal controls or invisible characters."""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
CONTROL: Final = re.compile(f"[{_CONTROLS}]")
# Also characters without width, and those that change the text direction.
UNSEEN: Final = re.compile(rf"[{_CONTROLS}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


# The number of characters of a peer's text that are shown in a log line.
SHOWN_MAX: Final = 100


def shown(text: str, chars_max: int = SHOWN_MAX) -> str:
    """A peer's text for the log: its beginning, with invisible characters escaped."""
    written = escape_unprintable(text[: chars_max + 1])
    return written if len(written) <= chars_max else f"{written[:chars_max]}..."


def escape_unprintable(text: str) -> str:
    """Escape each invisible character, so that the text is a single line."""
    return UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)
