"""Verdicts in their order, and the bytes of a log by the one rule for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.jobs import elections
from quorate.pipeline.jobs.sizes import BATCH_HEADERS, sizes_by_type
from quorate.pipeline.report.commands import LogCommands
from quorate.pipeline.report.plots import Span
from quorate.pipeline.report.sections import (
    elections_section,
    health_verdicts,
    records_section,
    threshold_words,
    worst_first,
)
from quorate.pipeline.report.top_rows import utc
from quorate.records.batch import HEADER_BYTES, encode_batch
from quorate.records.codec.schema import schema_of
from quorate.records.ids import TopicId
from quorate.records.metadata import NoOpRecord, RemoveTopicRecord, TopicRecord, encode_record
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of
from tests.pipeline.log_frames import START_MS as FRAMES_START_MS
from tests.pipeline.log_frames import Log, frame

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
        ("MetadataLogEndOffset", None, 9.0, "not judged"),
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
    section = records_section(sizes_by_type(frame_of(spark, entries)), LogCommands())
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


def test_a_verdict_says_above_what_it_is_one() -> None:
    said = threshold_words("MetadataLogLag")
    assert said == "warning above 1\u202f000, critical above 10\u202f000"
    assert threshold_words("MetadataErrorCount") == "critical above 0"
    assert threshold_words("MetadataLogEndOffset") == threshold_words("Another") == ""


def test_idle_time_is_grey_where_no_record_tells_it_from_a_missing_leader(
    spark: SparkSession,
) -> None:
    log = Log(epoch=0)
    for leader in (1, 2):
        log.lead(leader, [1, 2])
        log.at_ms += 3_600_000
    epochs = elections.tables(frame(spark, log.rows), {})["elections"]
    span = Span(utc(FRAMES_START_MS), utc(log.at_ms))
    told, idle = (
        elections_section(epochs, span, LogCommands(), has_noops=has_noops).plots[1]
        for has_noops in (True, False)
    )
    assert 'class="bad"' in told
    assert "idle" not in told
    assert 'class="bad"' not in idle
    # The bar, and a sample of its colour next to the words.
    assert idle.count('class="idle"') == 2
