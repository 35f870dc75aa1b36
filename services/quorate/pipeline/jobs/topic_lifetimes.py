"""Name and removal of each topic id, for the jobs on partitions and configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.jobs.typed_payloads import of_types
from quorate.records.metadata import RemoveTopicRecord, TopicRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def topic_lives(frame: DataFrame) -> DataFrame:
    """One row per topic id: topic_id, topic, removed_offset, removed (null while it exists).

    A recreated topic has another id, so its name occurs in several rows.
    """
    records = of_types(frame, TopicRecord, RemoveTopicRecord)
    removal = F.col("remove_topic_record.topicId").isNotNull()
    return (
        records.groupBy(
            F.coalesce("topic_record.topicId", "remove_topic_record.topicId").alias("topic_id")
        )
        .agg(
            F.max("topic_record.name").alias("topic"),
            F.max(F.when(removal, F.col("offset"))).alias("removed_offset"),
            F.max(F.when(removal, F.col("timestamp"))).alias("removed"),
        )
        .select("topic_id", "topic", "removed_offset", "removed")
    )
