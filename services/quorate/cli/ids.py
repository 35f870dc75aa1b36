"""Checks cluster ids on the command line."""

from __future__ import annotations

from quorate.cli.output import CommandError
from quorate.records.ids import ClusterId, check_cluster_id, format_uuid
from quorate.storage.random_ids import RESERVED_UUIDS


def parse_cluster_id(flag: str, text: str) -> ClusterId:
    """Check that every tool and log accepts the id. Raises CommandError that names the flag."""
    try:
        check_cluster_id(text)
    except ValueError as error:
        raise CommandError(f"{flag}: {error}") from error
    if text in map(format_uuid, RESERVED_UUIDS):
        raise CommandError(
            f"{flag}: Kafka keeps {text} to itself: take what `quorate storage random-uuid` prints"
        )
    return ClusterId(text)
