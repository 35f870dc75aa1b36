"""What is collected for the page is bounded, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.report.contents import health_verdicts, span_of, top, worst_first
from quorate.records.metadata import NoOpRecord
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of
from tests.pipeline.jobs.rows import moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_first_rows_and_how_many_there_are(spark: SparkSession) -> None:
    table = spark.range(100)
    few = top(table, 10, table["id"].desc())
    assert [row.id for row in few.rows] == list(range(99, 89, -1))
    assert (few.row_count, few.left_out) == (100, " (90 shorter ones are left out)")
    every = top(table, 101, "id")
    assert (len(every.rows), every.row_count, every.left_out) == (100, 100, "")


def test_the_span_of_a_log(spark: SparkSession) -> None:
    entries = [Entry(at, START_MS + 1000 * at, NoOpRecord()) for at in range(3)]
    span = span_of(frame_of(spark, entries))
    assert span is not None
    assert (span.start, span.end) == (moment(START_MS), moment(START_MS + 2000))
    assert span_of(frame_of(spark, [])) is None


def test_the_worst_verdict_comes_first(spark: SparkSession) -> None:
    rows = [
        ("MetadataLogLag", "ok", 3.0, "records"),
        ("SnapshotGenerationTimeMs", "warn", 12_500.5, "ms"),
        ("MetadataErrorCount", "critical", 1.0, "place"),
        ("LeaderElectionRate", "unknown", None, "read more"),
    ]
    table = spark.createDataFrame(rows, "metric string, verdict string, value double, what string")
    found = [(one.status, one.words) for one in worst_first(health_verdicts(table))]
    assert found == [
        ("critical", "1: place"),
        ("warning", "12 500.50: ms"),
        ("unknown", "read more"),
        ("ok", "3: records"),
    ]
