"""Ids that are drawn: of clusters and of directories."""

from __future__ import annotations

import secrets
from typing import Final

from quorate.records.ids import UUID_BYTES, format_uuid

RESERVED_UUIDS: Final = (bytes(UUID_BYTES), bytes(15) + b"\x01")


def draw_uuid() -> bytes:
    """A new id that no flag could be taken for.

    Kafka keeps the ids 0 and 1 to itself, and its tools stumble over a leading dash.
    """
    while True:
        identity = secrets.token_bytes(UUID_BYTES)
        if identity not in RESERVED_UUIDS and not format_uuid(identity).startswith("-"):
            return identity
