"""Converts topic records to state and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.configs.messages import ResourceType
from quorate.controller.errors import ReplayError
from quorate.controller.features.levels import encode_at, metadata_version
from quorate.controller.partitions.record_encoder import partition_values
from quorate.controller.partitions.records import partition_record
from quorate.controller.partitions.rows import PartitionRows
from quorate.controller.slices import run_to_end, sorted_in_slices
from quorate.controller.topics.topic_names import (
    has_similar_form,
    similar_form,
)
from quorate.records.ids import TopicId, format_uuid
from quorate.records.metadata import TopicRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.image import MetadataDelta, MetadataImage
    from quorate.controller.slices import Slices
    from quorate.controller.topics.image import Topic
    from quorate.records.metadata import MetadataRecord, RemoveTopicRecord

# Topics, or cells of the rows of their partitions, that are encoded together: a few milliseconds.
TOPICS_SLICE: Final = 256
CELLS_SLICE: Final = 12_288


def replay_topic(delta: MetadataDelta, record: TopicRecord) -> None:
    """Add a topic, without partitions yet. Raises ReplayError if its name or id is taken."""
    topic_id = TopicId(record.topic_id)
    topics = delta.topics
    if record.name in topics.ids or topic_id in topics.by_id:
        raise ReplayError(
            f"a topic {record.name!r} or its id {format_uuid(topic_id)} exists already"
        )
    topics.add(record.name, topic_id)
    if has_similar_form(record.name):
        form = similar_form(record.name)
        topics.similar_names[form] = tuple(
            sorted((*topics.similar_names.get(form, ()), record.name))
        )


def replay_remove_topic(delta: MetadataDelta, record: RemoveTopicRecord) -> None:
    """Remove a topic with its partitions and configs. Raises ReplayError if it is unknown."""
    run_to_end(remove_topic_in_slices(delta, record))


def remove_topic_in_slices(delta: MetadataDelta, record: RemoveTopicRecord) -> Slices[None]:
    """The same with pauses, as it may have very many partitions."""
    topics = delta.topics
    name = (yield from topics.remove_in_slices(TopicId(record.topic_id))).name
    delta.configs.remove((int(ResourceType.TOPIC), name))
    form = similar_form(name)
    left = tuple(other for other in topics.similar_names.get(form, ()) if other != name)
    if left:
        topics.similar_names[form] = left
    else:
        topics.similar_names.pop(form, None)


def topic_records(image: MetadataImage) -> Iterator[MetadataRecord | None]:
    """All topics, each with its partitions; None for a pause without a record."""
    level, topics = metadata_version(image.features), image.topics
    # Only keys: pairs would be as many more objects for the garbage collector to traverse.
    for name in sorted_in_slices(topics.ids):
        if name is None:
            yield None
            continue
        topic = topics.by_id[topics.ids[name]]
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition_id, partition in topics.partitions.of_topic(topic.number):
            yield partition_record(topic.topic_id, partition_id, partition, level=level)


def topic_values(image: MetadataImage) -> Iterator[list[bytes]]:
    """The same records, encoded together; a list may be empty."""
    level, topics = metadata_version(image.features), image.topics
    gathered = _Gathered(level)
    for name in sorted_in_slices(topics.ids):
        if name is None:
            yield gathered.values()
            continue
        topic = topics.by_id[topics.ids[name]]
        gathered.add_topic(topic)
        for part in topics.partitions.rows.parts_of(topic.number, topic.topic_id):
            gathered.add_rows(part)
            if gathered.is_full:
                yield gathered.values()
        if gathered.is_full:
            yield gathered.values()
    yield gathered.values()


class _Gathered:
    """Topics and rows of partitions that are to be encoded."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._clear()

    def _clear(self) -> None:
        # Each topic's value, and the number of rows before it.
        self._topics: list[tuple[bytes, int]] = []
        self._parts: list[PartitionRows] = []
        self._count = self._cells = 0

    @property
    def is_full(self) -> bool:
        return len(self._topics) >= TOPICS_SLICE or self._cells >= CELLS_SLICE

    def add_topic(self, topic: Topic) -> None:
        record = TopicRecord(name=topic.name, topic_id=topic.topic_id)
        self._topics.append((encode_at(self._level, record), self._count))

    def add_rows(self, rows: PartitionRows) -> None:
        self._parts.append(rows)
        self._count += len(rows)
        self._cells += rows.cell_count

    def values(self) -> list[bytes]:
        """Return all accumulated values and clear them."""
        rows: list[bytes] = []
        if self._parts:
            rows = partition_values(PartitionRows.joined(self._parts), self._level)
        values: list[bytes] = []
        done = 0
        for value, before in self._topics:
            values += rows[done:before]
            values.append(value)
            done = before
        values += rows[done:]
        self._clear()
        return values
