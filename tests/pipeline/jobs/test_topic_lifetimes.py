"""The lives of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.jobs.topic_lifetimes import topic_lives
from quorate.records.ids import TopicId, format_uuid
from quorate.records.metadata import MetadataRecord, RemoveTopicRecord, TopicRecord
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of
from tests.pipeline.jobs.rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_name_has_as_many_lives_as_it_had_ids(spark: SparkSession) -> None:
    first, second = TopicId(bytes(15) + b"\1"), TopicId(bytes(15) + b"\2")
    records: tuple[MetadataRecord, ...] = (
        TopicRecord(name="t", topic_id=first),
        RemoveTopicRecord(topic_id=first),
        TopicRecord(name="t", topic_id=second),
    )
    entries = [Entry(at, START_MS + at, record) for at, record in enumerate(records)]
    assert rows_of(topic_lives(frame_of(spark, entries))) == [
        (format_uuid(first), "t", 1, START_MS + 1),
        (format_uuid(second), "t", None, None),
    ]
