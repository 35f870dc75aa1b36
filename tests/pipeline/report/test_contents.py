"""Verdicts in their order, and the bytes of a log by the one rule for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.jobs.sizes import BATCH_HEADERS, sizes_by_type
from quorate.pipeline.report.contents import health_verdicts, records_section, worst_first
from quorate.records.batch import HEADER_BYTES, encode_batch
from quorate.records.ids import TopicId
from quorate.records.metadata import NoOpRecord, RemoveTopicRecord, TopicRecord, encode_record
from quorate.records.schema import schema_of
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quorate.records.metadata import KnownRecord


def test_the_worst_verdict_comes_first(spark: SparkSession) -> None:
    rows = [
        ("MetadataLogLag", "ok", 3.0, "records"),
        ("SnapshotGenerationTimeMs", "warn", 12_500.5, "ms"),
        ("MetadataErrorCount", "critical", 1.0, "place"),
        ("LeaderElectionRate", "unknown", None, "read more"),
        ("Another", "ok", 1.0, "x"),
    ]
    table = spark.createDataFrame(rows, "metric string, verdict string, value double, what string")
    found = worst_first(health_verdicts(table))
    assert [(one.status, one.words, one.metric) for one in found] == [
        ("critical", "1: place", "MetadataErrorCount"),
        ("warning", "12 500.50: ms", "SnapshotGenerationTimeMs"),
        ("unknown", "read more", "LeaderElectionRate"),
        ("ok", "3: records", "MetadataLogLag"),
        ("ok", "1: x", "Another"),
    ]
    assert [one.title for one in found][::4] == ["Damage", "Another"]


def test_bytes_are_those_of_the_batches_as_they_are_written(spark: SparkSession) -> None:
    ids = [TopicId(bytes(15) + bytes([number])) for number in (1, 2)]
    records: list[KnownRecord] = [
        TopicRecord(name="a" * 100, topic_id=ids[0]),
        TopicRecord(name="b" * 100, topic_id=ids[1]),
        RemoveTopicRecord(topic_id=ids[0]),
        NoOpRecord(),
    ]
    expected: dict[str, int] = {}
    for record in records:
        value = encode_record(record, min(schema_of(type(record)).versions.last, 4))
        batch = encode_batch([value], timestamp_ms=START_MS, base_offset=0, epoch=1)
        name = type(record).__name__
        expected[name] = expected.get(name, 0) + len(batch) - HEADER_BYTES
    expected[BATCH_HEADERS] = HEADER_BYTES * len(records)
    entries = [Entry(at, START_MS, record) for at, record in enumerate(records)]
    section = records_section(sizes_by_type(frame_of(spark, entries)))
    whole = sum(expected.values())
    order = sorted(expected, key=lambda name: (-expected[name], name))
    rows = section.tables[0].rows
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (name, f"{expected[name]}\xa0B", f"{100 * expected[name] / whole:.1f}\xa0%")
        for name in order
    ]
    assert {row[0]: (row[1], row[4]) for row in rows} == {
        "TopicRecord": (2, 1),
        "RemoveTopicRecord": (1, 0),
        "NoOpRecord": (1, 0),
        BATCH_HEADERS: (4, 0),
    }
    for name in order:
        assert name in section.plots[0]
