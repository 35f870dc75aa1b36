"""Words about what a peer has sent: short, printable, and comparable from one peer to the next."""

from __future__ import annotations

import re
from typing import Final

_QUOTED_MAX: Final = 100
_UNFIT: Final = re.compile(r"[^ !#-~]")
_VARYING: Final = re.compile(r'"[^"]*"|\d+')


def quoted(data: bytes) -> str:
    """Bytes of a peer within quotation marks: at most 100 characters of printable ASCII."""
    text = data[: _QUOTED_MAX + 1].decode("latin-1")
    if len(data) > _QUOTED_MAX:
        text = text[: _QUOTED_MAX - 3] + "..."
    return f'"{_UNFIT.sub("?", text)}"'


def cause_of(words: str) -> str:
    """Words without their numbers and quoted bytes, which is the same for all that a cause ends."""
    return _VARYING.sub("", words)
