"""Text of a log made legible: a name or a value may hold what moves a terminal, or hides."""

from __future__ import annotations

import re
from typing import Final

# Control characters, and those that turn the direction of what follows.
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def written_out(text: str) -> str:
    """The text with each character that nobody sees as its number: it is one line then."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
