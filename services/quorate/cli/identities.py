"""Ids of clusters on the command line, checked as they are given."""

from __future__ import annotations

import re
from typing import Final

from quorate.cli.output import CommandError
from quorate.records.ids import ClusterId, format_uuid
from quorate.storage.identities import RESERVED_UUIDS

_CLUSTER_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def parse_cluster_id(flag: str, text: str) -> ClusterId:
    """A short word that every tool and log takes. Raises CommandError that names the flag."""
    if _CLUSTER_ID.fullmatch(text) is None:
        raise CommandError(
            f"{flag}: {text!r} is no id: take what `quorate storage random-uuid` prints, or up to"
            " 64 letters, digits, dots, dashes and underscores"
        )
    if text in map(format_uuid, RESERVED_UUIDS):
        raise CommandError(
            f"{flag}: Kafka keeps {text} to itself: take what `quorate storage random-uuid` prints"
        )
    return ClusterId(text)
