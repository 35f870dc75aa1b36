"""Converts an image to snapshot records and back (KIP-630).

Records are in the order of the metadata kinds, which is Kafka's. If Kafka's order is that of a hash
map, they are sorted, so that equal images give equal snapshots. They are produced in slices, so
that other tasks can run while a large snapshot is written or loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.features.levels import encode_at, metadata_version
from quorate.controller.image import LogPosition, MetadataDelta, MetadataImage
from quorate.controller.metadata_kinds import METADATA_KINDS
from quorate.controller.record_runs import RecordRun
from quorate.controller.replay import replay_record
from quorate.controller.slices import run_to_end
from quorate.records.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.controller.record_runs import Item
    from quorate.controller.slices import Slices
    from quorate.records.metadata import MetadataRecord

SLICE_RECORDS: Final = 100


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Every record of the snapshot, one at a time."""
    for subject in METADATA_KINDS:
        yield from (record for record in subject.snapshot(image) if record is not None)


def snapshot_slices(image: MetadataImage) -> Iterator[list[bytes]]:
    """The values of the same records, encoded; each list takes a few milliseconds at most."""
    level = metadata_version(image.features)
    for subject in METADATA_KINDS:
        if subject.snapshot_values is not None:
            yield from subject.snapshot_values(image)
            continue
        values: list[bytes] = []
        for record in subject.snapshot(image):
            if record is not None:
                values.append(encode_at(level, record))
            if record is None or len(values) == SLICE_RECORDS:
                yield values
                values = []
        yield values


class SnapshotLoader:
    """Builds the image of a snapshot from its records, given in any number of slices."""

    def __init__(self, position: LogPosition) -> None:
        """`position` is the snapshot's: its end offset, its epoch, the last timestamp below it."""
        self._position = position
        self._delta = MetadataDelta(MetadataImage())

    def add(self, items: Iterable[Item]) -> None:
        """Add the next records. Raises ReplayError for records that cannot be in a snapshot."""
        run_to_end(self.add_in_slices(items))

    def add_in_slices(self, items: Iterable[Item]) -> Slices[None]:
        """The same with pauses."""
        # A broker in the snapshot has caught up once it has replayed up to the snapshot's end.
        offset = Offset(self._position.end_offset - 1)
        delta = self._delta
        for item in items:
            if not isinstance(item, RecordRun):
                replay_record(delta, item, offset)
                yield
            elif item.replay(delta, lambda record, _: replay_record(delta, record, offset)):
                yield
            else:
                for record in item.records():
                    replay_record(delta, record, offset)
                    yield

    def finish(self) -> MetadataImage:
        """The image, once all records are added; the loader is used up."""
        return self._delta.apply(self._position)
