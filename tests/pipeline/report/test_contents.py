"""What is collected for the page is bounded, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.report.contents import span_of, top
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
