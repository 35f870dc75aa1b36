"""Keeps uninterpreted records by key, and drops them when they are removed (rule 22).

Opening a directory of Apache Kafka and writing a snapshot of it must not lose what only Kafka
interprets. So each such record is a row under a key, the newest record wins, and it goes back into
snapshots unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quorate.controller.errors import UnsupportedMetadataVersionError
from quorate.controller.slices import sorted_in_slices
from quorate.records.metadata import RECORD_TYPES
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.controller.image import MetadataDelta, MetadataImage
    from quorate.controller.opaque.image import RowKey
    from quorate.records.metadata import (
        MetadataRecord,
        UnknownRecord,
    )


@value_type
class OpaqueRecords:
    """The records of one kind; a record and the one that removes it have the same `key`."""

    name: str
    key: Callable[[Any], RowKey]

    def put(self, delta: MetadataDelta, record: Any) -> None:  # noqa: ANN401 - of the group
        """Set the row."""
        delta.opaque.group(self.name)[self.key(record)] = record

    def remove(self, delta: MetadataDelta, record: Any) -> None:  # noqa: ANN401 - of the group
        """Remove the row, if there is one."""
        delta.opaque.group(self.name).pop(self.key(record), None)

    def records(self, image: MetadataImage) -> Iterator[MetadataRecord | None]:
        """All rows in order of their keys; None for a pause without one."""
        rows = image.opaque.group(self.name)
        for key in sorted_in_slices(rows):
            yield None if key is None else rows[key]


def replay_unknown(delta: MetadataDelta, record: UnknownRecord) -> None:
    """Keep a record of an unknown type as it is.

    Raises UnsupportedMetadataVersionError for an unknown version of a known type: its changes of
    kinds that are interpreted here would be lost.
    """
    known = RECORD_TYPES.get(record.api_key)
    if known is not None:
        raise UnsupportedMetadataVersionError(
            f"{known.__name__} of version {record.version} is newer than this release; run one that"
            " knows it"
        )
    delta.opaque.unknown.append(record)
