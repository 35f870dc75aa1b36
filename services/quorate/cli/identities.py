"""Ids of clusters and directories on the command line: drawn, and checked as they are given."""

from __future__ import annotations

import re
import secrets
from typing import Final

from quorate.cli.output import CommandError
from quorate.records.ids import UUID_BYTES, ClusterId, format_uuid

_CLUSTER_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_RESERVED_UUIDS: Final = (bytes(UUID_BYTES), bytes(15) + b"\x01")


def draw_uuid() -> bytes:
    """A new id that no flag could be taken for.

    Kafka keeps the ids 0 and 1 to itself, and its tools stumble over a leading dash.
    """
    while True:
        identity = secrets.token_bytes(UUID_BYTES)
        if identity not in _RESERVED_UUIDS and not format_uuid(identity).startswith("-"):
            return identity


def parse_cluster_id(flag: str, text: str) -> ClusterId:
    """A short word that every tool and log takes. Raises CommandError that names the flag."""
    if _CLUSTER_ID.fullmatch(text) is None:
        raise CommandError(
            f"{flag}: {text!r} is no id: take what `quorate storage random-uuid` prints, or up to"
            " 64 letters, digits, dots, dashes and underscores"
        )
    if text in map(format_uuid, _RESERVED_UUIDS):
        raise CommandError(
            f"{flag}: Kafka keeps {text} to itself: take what `quorate storage random-uuid` prints"
        )
    return ClusterId(text)
