"""An image as records, and records as an image: what a snapshot holds (KIP-630).

Records come in Kafka's order (features, brokers, controllers, topics with their partitions,
configurations, the rest) and, where Kafka's order is that of a hash map, sorted: equal images give
equal snapshots. They come in slices, so that others can run while a large one is written or
loaded.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.controller.brokers.records import broker_record
from quorate.controller.configs.records import config_records
from quorate.controller.features import METADATA_VERSION, encode_at, metadata_version
from quorate.controller.image import LogPosition, MetadataDelta, MetadataImage
from quorate.controller.opaque.records import CONTROLLERS
from quorate.controller.partition_records import partition_record
from quorate.controller.replay import replay_record
from quorate.records.ids import Offset
from quorate.records.metadata import FeatureLevelRecord, MetadataRecord, TopicRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")
SLICE_RECORDS: Final = 100
SORTED_TOGETHER_MAX: Final = 2_000


def snapshot_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Every record of the snapshot, one at a time."""
    return (record for record in _steps(image) if record is not None)


def _steps(image: MetadataImage) -> Iterator[MetadataRecord | None]:
    """The records; None where time went by without one."""
    level = metadata_version(image.features)
    yield from _features(image)
    for _, broker in sorted(image.brokers.by_id.items()):
        yield broker_record(broker, level)
    yield from _rows(image, are_controllers=True)
    # Keys alone: a pair for each would be as many objects for the garbage collector to look at.
    for name in _sorted(image.topics.ids, lambda name: name):
        if name is None:
            yield None
            continue
        topic_id = image.topics.ids[name]
        topic = image.topics.by_id[topic_id]
        yield TopicRecord(name=topic.name, topic_id=topic_id)
        for partition_id, partition in image.topics.partitions.of_topic(topic.number):
            yield partition_record(topic_id, partition_id, partition, level=level)
    for resource in _sorted(image.configs.by_resource, lambda resource: resource):
        if resource is None:
            yield None
        else:
            yield from config_records(resource, sorted(image.configs.of(resource).items()))
    yield from _rows(image, are_controllers=False)
    yield from image.opaque.unknown


def _sorted(items: Iterable[T], key: Callable[[T], object]) -> Iterator[T | None]:
    """All items in order, with a None for each part that was sorted.

    To sort a hundred thousand at once takes a tenth of a second, in which nobody else has a turn.
    """
    left = iter(items)
    parts = []
    while part := list(islice(left, SORTED_TOGETHER_MAX)):
        part.sort(key=key, reverse=True)  # type: ignore[arg-type]
        parts.append(part)
        yield None
    yield from merge(*map(_taken, parts), key=key)  # type: ignore[arg-type]


def _taken(part: list[T]) -> Iterator[T]:
    """From the end, so that none is left to be freed with all the others when they are through."""
    while part:
        yield part.pop()


def snapshot_slices(
    image: MetadataImage, slice_records: int = SLICE_RECORDS
) -> Iterator[list[bytes]]:
    """The records' values, encoded, at most `slice_records` at a time; a slice may be empty."""
    level = metadata_version(image.features)
    values: list[bytes] = []
    for record in _steps(image):
        if record is not None:
            values.append(encode_at(level, record))
        if record is None or len(values) == slice_records:
            yield values
            values = []
    yield values


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    """metadata.version first: it says how to read the rest."""
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    for name in names:
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])


def _rows(image: MetadataImage, *, are_controllers: bool) -> Iterator[MetadataRecord | None]:
    keys = (key for key in image.opaque.rows if (key[0] == CONTROLLERS) is are_controllers)
    for key in _sorted(keys, lambda key: key):
        yield None if key is None else image.opaque.rows[key]


class SnapshotLoader:
    """Builds the image of a snapshot from its records, given in any number of slices."""

    def __init__(self, position: LogPosition) -> None:
        """`position` is the snapshot's: its end offset, its epoch, the last timestamp below it."""
        self._position = position
        self._delta = MetadataDelta(MetadataImage())

    def add(self, records: Iterable[MetadataRecord]) -> None:
        """Take the next records. Raises ReplayError for what cannot be in a snapshot."""
        # A broker of a snapshot has caught up once it has replayed as far as the snapshot goes.
        offset = Offset(self._position.end_offset - 1)
        for record in records:
            replay_record(self._delta, record, offset)

    def finish(self) -> MetadataImage:
        """The image, once every record was added; the loader is used up."""
        return self._delta.apply(self._position)
