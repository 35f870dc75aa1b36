"""Text of others made legible: a name or a value may hold what moves a terminal, or hides."""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
CONTROL: Final = re.compile(f"[{_CONTROLS}]")
# With those that have no width, or turn the direction of what follows.
UNSEEN: Final = re.compile(rf"[{_CONTROLS}\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


# Of a text that a peer chose, so much is shown in a line of the log.
SHOWN_MAX: Final = 100


def shown(text: str, chars_max: int = SHOWN_MAX) -> str:
    """A peer's text for the log: its beginning, with an escape for each unseen character."""
    written = escape_unprintable(text[: chars_max + 1])
    return written if len(written) <= chars_max else f"{written[:chars_max]}..."


def escape_unprintable(text: str) -> str:
    """The text with each character that nobody sees as an escape: it is one line then."""
    return UNSEEN.sub(lambda found: repr(found[0])[1:-1], text)
