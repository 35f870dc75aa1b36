"""Formats text from a peer: short, printable, and comparable between peers."""

from __future__ import annotations

import re
from typing import Final

_QUOTED_MAX: Final = 100
_UNFIT: Final = re.compile(r"[^ !#-~]")
_VARYING: Final = re.compile(r'"[^"]*"|\d+')


def quoted(data: bytes) -> str:
    """Quote bytes of a peer: at most 100 characters of printable ASCII."""
    text = data[: _QUOTED_MAX + 1].decode("latin-1")
    if len(data) > _QUOTED_MAX:
        text = text[: _QUOTED_MAX - 3] + "..."
    return f'"{_UNFIT.sub("?", text)}"'


def cause_of(words: str) -> str:
    """Remove numbers and quoted bytes, so that all messages with one cause are equal."""
    return _VARYING.sub("", words)
