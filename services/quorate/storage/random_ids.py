"""Random ids of clusters and of directories."""

from __future__ import annotations

import secrets
from typing import Final

from quorate.records.ids import UUID_BYTES, format_uuid

RESERVED_UUIDS: Final = (bytes(UUID_BYTES), bytes(15) + b"\x01")


def draw_uuid() -> bytes:
    """Generate an id that cannot be mistaken for a command-line flag.

    Kafka reserves the ids 0 and 1, and its tools fail on a leading dash.
    """
    while True:
        identity = secrets.token_bytes(UUID_BYTES)
        if identity not in RESERVED_UUIDS and not format_uuid(identity).startswith("-"):
            return identity
