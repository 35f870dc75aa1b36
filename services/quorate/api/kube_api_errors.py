"""The message of an error response of the Kubernetes API server, bounded and printable."""

from __future__ import annotations

import json
from typing import Final

WORDS_MAX: Final = 300
# A larger body is not a Status object, and is not parsed.
BODY_BYTES_MAX: Final = 64 * 1024


def message_of(body: bytes | str | None) -> str:
    """The field `message` of a Status object; empty for any other body."""
    if not body or len(body) > BODY_BYTES_MAX:
        return ""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = said.get("message") if isinstance(said, dict) else None
    return printable(message) if isinstance(message, str) else ""


def printable(text: str) -> str:
    """The text on one line of at most WORDS_MAX characters, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= WORDS_MAX else f"{line[: WORDS_MAX - 3]}..."
