"""Builds the section about the log itself: its records over time, and its busiest minutes.

The log is read once, into a row per minute; the facts at the top of the page are sums of these.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.pipeline.jobs.log_rows import in_log_time, valid
from quorate.pipeline.jobs.sizes import record_bytes
from quorate.pipeline.report.commands import iso_time
from quorate.pipeline.report.formatting import size
from quorate.pipeline.report.page import Amount, Section, Table
from quorate.pipeline.report.plots import Span, line
from quorate.pipeline.report.top_rows import top, utc
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from quorate.pipeline.report.commands import LogCommands

ACTIVITY: Final = "Records over time"
_MINUTE_MS: Final = 60_000
_BINS_MAX: Final = 250
# The widths of a bin in minutes; for a longer log they are whole days.
_WIDTHS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
_BUSIEST: Final = 5
# The last time that Python's datetime supports, in ms since 1970.
_LAST_MS: Final = 253_402_300_799_999


@value_type
class Extent:
    """The extent of a log; `is_whole` is True if no earlier records are missing."""

    span: Span
    row_count: int
    last_offset: int
    node_ids: tuple[int, ...]
    is_whole: bool


def minutes_of(log: DataFrame) -> DataFrame:
    """Cache one row for each minute with a record; snapshot entries count only in `rows`."""
    at_ms = F.unix_millis("timestamp")
    is_of_log = ~F.col("from_snapshot")
    return (
        in_log_time(valid(log), log)
        .groupBy(F.floor(at_ms / _MINUTE_MS).alias("minute"))
        .agg(
            F.count_if(is_of_log).alias("records"),
            F.sum(F.when(is_of_log, record_bytes())).alias("bytes"),
            F.count("*").alias("rows"),
            F.min(at_ms).alias("first_ms"),
            F.max(at_ms).alias("last_ms"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.collect_set("source_node").alias("nodes"),
        )
        .persist()
    )


def extent_of(minutes: DataFrame) -> Extent | None:
    """The extent of all minutes together; None for an empty log."""
    found = minutes.agg(
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.sum("rows").alias("rows"),
        F.sum("records").alias("records"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_set("nodes")))).alias("nodes"),
    ).first()
    if found is None or not found.rows:
        return None
    return Extent(
        Span(utc(found.first_ms), utc(found.last_ms)),
        found.rows,
        found.last,
        tuple(found.nodes),
        # Rows of a snapshot replace all earlier records.
        found.first == 0 or found.rows > found.records,
    )


def activity_section(minutes: DataFrame, span: Span, commands: LogCommands) -> Section:
    """The section with the records of the log over time, and its busiest minutes."""
    of_log = minutes.where("records > 0")
    busiest = top(of_log, _BUSIEST, F.desc("records"), "minute")
    command = ""
    if busiest.rows:
        minute = busiest.rows[0].minute
        command = commands.command(
            "sizes",
            "by_type",
            starting_offsets=iso_time(_start(minute)),
            ending_offsets=iso_time(_start(minute + 1)),
        )
    width = _width(span)
    unit = f"records in {_width_words(width)}"
    return Section(
        ACTIVITY,
        "A log grows with what changes: brokers, leaders, topics. Snapshots do not count.",
        (line("Records", span, _points(of_log, width), unit, "plain"),),
        (
            Table(
                "The busiest minutes",
                ("minute", "records", "bytes"),
                tuple(
                    (_start(row.minute), row.records, Amount(size(row.bytes)))
                    for row in busiest.rows
                ),
                len(busiest.rows),
                command,
                "What the first of them consists of",
            ),
        ),
    )


def _start(minute: int) -> datetime:
    return utc(min(minute * _MINUTE_MS, _LAST_MS))


def _width(span: Span) -> int:
    """The width of a bin in minutes that gives at most _BINS_MAX bins."""
    minutes = (span.end - span.start) // timedelta(minutes=1)
    days = minutes // (1440 * _BINS_MAX) + 1
    return next((width for width in _WIDTHS if minutes <= width * _BINS_MAX), days * 1440)


def _width_words(width: int) -> str:
    if width % 1440 == 0:
        return f"{width // 1440} d"
    return f"{width // 60} h" if width % 60 == 0 else f"{width} min"


def _points(minutes: DataFrame, width: int) -> list[tuple[datetime, float]]:
    """The records of each bin at its start, and 0 at the end of a bin without a neighbour."""
    rows = (
        minutes.groupBy(F.floor(F.col("minute") / width).alias("bin"))
        .agg(F.sum("records").alias("records"))
        .orderBy("bin")
        .collect()
    )
    points: list[tuple[datetime, float]] = []
    for at, row in enumerate(rows):
        points.append((_start(row.bin * width), float(row.records)))
        if at + 1 == len(rows) or rows[at + 1].bin > row.bin + 1:
            points.append((_start((row.bin + 1) * width), 0.0))
    return points
