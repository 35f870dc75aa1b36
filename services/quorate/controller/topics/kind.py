"""Topics as a metadata kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quorate.controller.metadata_kind import MetadataKind, WriteOperation
from quorate.controller.partitions.leader_isr_sweep import SWEEP_TASK
from quorate.controller.partitions.records import (
    clear_elr_in_slices,
    replay_clear_elr,
    replay_partition,
    replay_partition_change,
)
from quorate.controller.topics.create_topics import create_topics_in_slices, rejected_topic
from quorate.controller.topics.delete_topics import delete_topics_in_slices, refused_deletion
from quorate.controller.topics.describe_topics import (
    describe_topics_in_slices,
    list_topics_in_slices,
)
from quorate.controller.topics.messages import (
    CreateTopics,
    DeleteTopics,
    DescribeTopics,
    ListTopics,
)
from quorate.controller.topics.records import (
    remove_topic_in_slices,
    replay_remove_topic,
    replay_topic,
    topic_records,
    topic_values,
)
from quorate.records.metadata import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from immutables import Map

    from quorate.controller.image import MetadataImage


def _large(image: MetadataImage) -> tuple[Map[Any, Any] | list[Any], ...]:
    topics = image.topics
    return topics.similar_names, topics.ids, topics.by_id, topics.partitions.rows.disposable_parts()


TOPICS: Final = MetadataKind(
    writes=(
        WriteOperation(
            request=CreateTopics,
            in_slices=create_topics_in_slices,
            uses_overlay=True,
            refused=rejected_topic,
        ),
        WriteOperation(
            request=DeleteTopics, in_slices=delete_topics_in_slices, refused=refused_deletion
        ),
    ),
    reads={ListTopics: list_topics_in_slices, DescribeTopics: describe_topics_in_slices},
    replay={
        TopicRecord: replay_topic,
        RemoveTopicRecord: replay_remove_topic,
        PartitionRecord: replay_partition,
        PartitionChangeRecord: replay_partition_change,
        ClearElrRecord: replay_clear_elr,
    },
    replay_in_slices={
        RemoveTopicRecord: remove_topic_in_slices,
        ClearElrRecord: clear_elr_in_slices,
    },
    snapshot=topic_records,
    snapshot_values=topic_values,
    large_parts=_large,
    periodic_task=SWEEP_TASK,
)
