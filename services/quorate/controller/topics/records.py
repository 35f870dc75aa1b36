"""Records of topics: how each changes the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.configs.messages import ResourceType
from quorate.controller.errors import ReplayError
from quorate.controller.image import Topic
from quorate.controller.topics.names import (
    has_similar_form,
    similar_form,
)
from quorate.records.ids import TopicId, format_uuid

if TYPE_CHECKING:
    from quorate.controller.delta import MetadataDelta
    from quorate.records.metadata import RemoveTopicRecord, TopicRecord


def replay_topic(delta: MetadataDelta, record: TopicRecord) -> None:
    """Add a topic, without partitions yet. Raises ReplayError when its name or id is taken."""
    topic_id = TopicId(record.topic_id)
    if record.name in delta.topic_ids or topic_id in delta.topics:
        raise ReplayError(
            f"a topic {record.name!r} or its id {format_uuid(topic_id)} exists already"
        )
    delta.topics[topic_id] = Topic(record.name, topic_id)
    delta.topic_ids[record.name] = topic_id
    if has_similar_form(record.name):
        form = similar_form(record.name)
        delta.similar_names[form] = tuple(sorted((*delta.similar_names.get(form, ()), record.name)))


def replay_remove_topic(delta: MetadataDelta, record: RemoveTopicRecord) -> None:
    """Remove a topic with its partitions and configurations. Raises ReplayError when unknown."""
    name = delta.remove_topic(TopicId(record.topic_id)).name
    delta.configs.pop((int(ResourceType.TOPIC), name), None)
    form = similar_form(name)
    left = tuple(other for other in delta.similar_names.get(form, ()) if other != name)
    if left:
        delta.similar_names[form] = left
    else:
        delta.similar_names.pop(form, None)
