"""Records as columns, from JSON or as they came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.jobs.typed_payloads import column_of, of_types, struct_of
from quorate.records.metadata import NoOpRecord, PartitionChangeRecord, TopicRecord
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_json_is_parsed_and_what_it_leaves_out_is_null(spark: SparkSession) -> None:
    change = PartitionChangeRecord(partition_id=3, topic_id=bytes(16), isr=(1, 2))  # type: ignore[arg-type]
    entries = [Entry(0, START_MS, change), Entry(1, START_MS, NoOpRecord())]
    rows = of_types(frame_of(spark, entries), PartitionChangeRecord, TopicRecord).collect()
    assert [row.offset for row in rows] == [0]
    assert rows[0].topic_record is None
    found = rows[0].partition_change_record
    assert (found.partitionId, found.isr, found.leader, found.replicas) == (3, [1, 2], None, None)
    assert found.topicId == "AAAAAAAAAAAAAAAAAAAAAA"


def test_a_column_that_is_there_is_taken(spark: SparkSession) -> None:
    entries = [Entry(0, START_MS, NoOpRecord())]
    typed = frame_of(spark, entries).select(
        F.lit("TopicRecord").alias("record_type"),
        F.from_json(F.lit('{"name":"typed"}'), struct_of(TopicRecord)).alias("topic_record"),
    )
    assert column_of(TopicRecord) == "topic_record"
    assert of_types(typed, TopicRecord).collect()[0].topic_record.name == "typed"
