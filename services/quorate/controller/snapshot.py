"""An image as records, and records as an image: what a snapshot holds (KIP-630).

Records come in Kafka's order (features, brokers, controllers, topics with their partitions,
configurations, the rest) and, where Kafka's order is that of a hash map, sorted: equal images give
equal snapshots. They come in slices, so that whoever writes or loads a large one can let others run
in between.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from quorate.controller.brokers import broker_record
from quorate.controller.configs import config_records
from quorate.controller.delta import MetadataDelta
from quorate.controller.features import METADATA_VERSION, encode_at, metadata_version
from quorate.controller.image import LogPosition, MetadataImage
from quorate.controller.opaque import CONTROLLERS
from quorate.controller.partition_records import partition_record
from quorate.controller.replay import replay_record
from quorate.records.ids import Offset
from quorate.records.metadata import FeatureLevelRecord, MetadataRecord, TopicRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SLICE_RECORDS: Final = 500


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Every record of the snapshot, one at a time."""
    level = metadata_version(image.features)
    yield from _features(image)
    for _, broker in sorted(image.brokers.by_id.items()):
        yield broker_record(broker, level)
    yield from _rows(image, are_controllers=True)
    for _, topic_id in sorted(image.topic_ids.items()):
        topic = image.topics[topic_id]
        yield TopicRecord(name=topic.name, topic_id=topic_id)
        for partition_id, partition in topic.partitions.items():
            yield partition_record(topic_id, partition_id, partition, level=level)
    for key, entries in sorted(image.configs.items(), key=lambda item: item[0]):
        yield from config_records(key, sorted(entries.items()))
    yield from _rows(image, are_controllers=False)
    yield from image.unknown


def snapshot_slices(
    image: MetadataImage, slice_records: int = SLICE_RECORDS
) -> Iterator[list[bytes]]:
    """The records' values, encoded, `slice_records` at a time."""
    level = metadata_version(image.features)
    records = snapshot_records(image)
    while values := [encode_at(level, record) for record in islice(records, slice_records)]:
        yield values


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    """metadata.version first: it says how to read the rest."""
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])


def _rows(image: MetadataImage, *, are_controllers: bool) -> Iterator[MetadataRecord]:
    keys = (key for key in image.rows if (key[0] == CONTROLLERS) is are_controllers)
    for key in sorted(keys):
        yield image.rows[key]


class SnapshotLoader:
    """Builds the image of a snapshot from its records, given in any number of slices."""

    def __init__(self, position: LogPosition) -> None:
        """`position` is the snapshot's: its end offset, its epoch, the last timestamp below it."""
        self._position = position
        self._image = MetadataImage()

    def add(self, records: Iterable[MetadataRecord]) -> None:
        """Take the next records. Raises ReplayError for what cannot be in a snapshot."""
        delta = MetadataDelta(self._image)
        # A broker of a snapshot has caught up once it has replayed as far as the snapshot goes.
        offset = Offset(self._position.end_offset - 1)
        for record in records:
            replay_record(delta, record, offset)
        self._image = delta.apply(self._position)

    def finish(self) -> MetadataImage:
        """The image, once every record was added."""
        return self._image.at(self._position)
