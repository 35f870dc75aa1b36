"""Records over time: counted by the minute, and put together where there are many minutes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from quorate.pipeline.report.activity_section import activity_section, extent_of, minutes_of
from quorate.pipeline.report.commands import LogCommands
from quorate.pipeline.report.plots import Span
from quorate.pipeline.report.top_rows import utc
from tests.pipeline.log_frames import START_MS, Log, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE_MS = 60_000
# The begin of the minute in which histories of tests begin.
FIRST_MS = START_MS // MINUTE_MS * MINUTE_MS


def a_log() -> Log:
    """Two records in the first minute, three in the fourth, one two days later."""
    log = Log(source_node=3)
    for minute, count in ((0, 2), (3, 3), (2 * 1440, 1)):
        log.at_ms = START_MS + minute * MINUTE_MS
        for _ in range(count):
            log.add("NoOpRecord", {})
    return log


def test_the_extent_is_that_of_all_rows(spark: SparkSession) -> None:
    log = a_log()
    extent = extent_of(minutes_of(frame(spark, log.rows)))
    assert extent is not None
    assert extent.span == Span(utc(START_MS), utc(log.at_ms))
    assert (extent.row_count, extent.last_offset, extent.node_ids) == (6, 5, (3,))
    assert extent.is_whole
    part = extent_of(minutes_of(frame(spark, log.rows[1:])))
    assert part is not None
    assert not part.is_whole
    assert extent_of(minutes_of(frame(spark, []))) is None


def test_a_snapshot_stands_for_what_was_before_it_and_is_no_activity(spark: SparkSession) -> None:
    log = Log(offset=9)
    log.snapshot([("FeatureLevelRecord", {"name": "x", "featureLevel": 1})])
    log.at_ms += 5 * MINUTE_MS
    log.add("NoOpRecord", {})
    minutes = minutes_of(frame(spark, log.rows))
    extent = extent_of(minutes)
    assert extent is not None
    assert extent.is_whole
    assert extent.row_count == 4
    (busiest,) = activity_section(minutes, extent.span, LogCommands()).tables
    assert [(row[0], row[1]) for row in busiest.rows] == [(utc(FIRST_MS + 5 * MINUTE_MS), 1)]


def test_the_busiest_minute_is_told_with_the_way_to_its_records(spark: SparkSession) -> None:
    log = a_log()
    minutes = minutes_of(frame(spark, log.rows))
    section = activity_section(minutes, Span(utc(START_MS), utc(log.at_ms)), LogCommands())
    (busiest,) = section.tables
    fourth = utc(FIRST_MS) + timedelta(minutes=3)
    assert [(row[0], row[1]) for row in busiest.rows] == [
        (fourth, 3),
        (utc(FIRST_MS), 2),
        (utc(FIRST_MS) + timedelta(days=2), 1),
    ]
    assert busiest.command == (
        "quorate pipeline sizes --path DIR --table by_type"
        f" --starting-offsets {fourth:%Y-%m-%dT%H:%M}:00.000Z"
        f" --ending-offsets {fourth + timedelta(minutes=1):%Y-%m-%dT%H:%M}:00.000Z"
    )
    # Of two days a quarter of an hour is put together.
    (plot,) = section.plots
    assert "records in 15 min" in plot
    assert ": 5 records" in plot


def test_times_that_no_calendar_goes_beyond_are_drawn(spark: SparkSession) -> None:
    log = Log(at_ms=253_402_300_799_999)
    log.add("NoOpRecord", {})
    minutes = minutes_of(frame(spark, log.rows))
    span = Span(utc(0), utc(log.at_ms))
    assert activity_section(minutes, span, LogCommands()).tables[0].rows
