"""Keeps uninterpreted records by key, until other records remove them (rule `lossless_replay`).

Opening a data directory of Apache Kafka and writing a snapshot of it must not lose records that
only Kafka interprets. So the newest such record of each key is kept, and snapshots contain it
unchanged.
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
    """The records of one kind; `key` is the same for a record and the record that removes it."""

    name: str
    key: Callable[[Any], RowKey]

    def put(self, delta: MetadataDelta, record: Any) -> None:  # noqa: ANN401 - of the group
        """Set the row."""
        delta.opaque.group(self.name)[self.key(record)] = record

    def remove(self, delta: MetadataDelta, record: Any) -> None:  # noqa: ANN401 - of the group
        """Remove the row, if there is one."""
        delta.opaque.group(self.name).pop(self.key(record), None)

    def records(self, image: MetadataImage) -> Iterator[MetadataRecord | None]:
        """All rows in key order; None for a pause without a row."""
        rows = image.opaque.group(self.name)
        for key in sorted_in_slices(rows):
            yield None if key is None else rows[key]


def replay_unknown(delta: MetadataDelta, record: UnknownRecord) -> None:
    """Keep a record of an unknown type as it is.

    Raises UnsupportedMetadataVersionError for an unknown version of a known type: this controller
    interprets such records, and their changes would be lost.
    """
    known = RECORD_TYPES.get(record.api_key)
    if known is not None:
        raise UnsupportedMetadataVersionError(
            f"{known.__name__} of version {record.version} is newer than this release; run one that"
            " knows it"
        )
    delta.opaque.unknown.append(record)
