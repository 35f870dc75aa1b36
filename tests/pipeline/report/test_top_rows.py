"""Rows that are collected for the page are bounded, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.report.top_rows import identifier, in_millis, moment, top, utc
from tests.pipeline.jobs.rows import moment as moment_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_first_rows_and_how_many_there_are(spark: SparkSession) -> None:
    table = spark.range(100)
    few = top(table, 10, table["id"].desc())
    assert [row.id for row in few.rows] == list(range(99, 89, -1))
    assert (few.row_count, few.omitted_note) == (100, " (90 shorter ones are left out)")
    every = top(table, 101, "id")
    assert (len(every.rows), every.row_count, every.omitted_note) == (100, 100, "")


def test_ids_and_moments(spark: SparkSession) -> None:
    assert [identifier(value) for value in (1001, None, "x")] == ["1001", None, "x"]
    assert utc(1_795_000_000_123) == moment(1_795_000_000_123) == moment_of(1_795_000_000_123)
    assert moment(None) is None
    table = spark.sql("select timestamp_millis(17) as start")
    assert [row.start_ms for row in in_millis(table).collect()] == [17]
