"""Records of topics: how each changes the state, and all of them with their partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.configs.messages import ResourceType
from quorate.controller.errors import ReplayError
from quorate.controller.features.levels import metadata_version
from quorate.controller.partition_records import partition_record
from quorate.controller.slices import finish, sorted_in_parts
from quorate.controller.topics.names import (
    has_similar_form,
    similar_form,
)
from quorate.records.ids import TopicId, format_uuid
from quorate.records.metadata import TopicRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.image import MetadataDelta, MetadataImage
    from quorate.controller.slices import Slices
    from quorate.records.metadata import MetadataRecord, RemoveTopicRecord


def replay_topic(delta: MetadataDelta, record: TopicRecord) -> None:
    """Add a topic, without partitions yet. Raises ReplayError when its name or id is taken."""
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
    """Remove a topic with its partitions and configurations. Raises ReplayError when unknown."""
    finish(remove_topic_in_slices(delta, record))


def remove_topic_in_slices(delta: MetadataDelta, record: RemoveTopicRecord) -> Slices[None]:
    """The same with pauses: it may have very many partitions."""
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
    """All topics, each with its partitions; None where time went by without a record."""
    level, topics = metadata_version(image.features), image.topics
    # Keys alone: a pair for each would be as many objects for the garbage collector to look at.
    for name in sorted_in_parts(topics.ids):
        if name is None:
            yield None
            continue
        topic = topics.by_id[topics.ids[name]]
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for partition_id, partition in topics.partitions.of_topic(topic.number):
            yield partition_record(topic.topic_id, partition_id, partition, level=level)
