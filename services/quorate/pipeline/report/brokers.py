"""What the page shows of brokers: which were fenced, for how long, and which flap."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, IntegerType, LongType, StructField, StructType

from quorate.pipeline.report.page import Amount, HealthVerdict, Section, Table
from quorate.pipeline.report.plots import Interval, Lane, Span, lanes
from quorate.pipeline.report.shown import (
    LANES_MAX,
    MARKS_MAX,
    ROWS_MAX,
    identifier,
    in_millis,
    moment,
    top,
    utc,
)
from quorate.pipeline.report.text import duration, grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, Row

TOTALS_SCHEMA: Final = StructType(
    [
        StructField("broker_id", IntegerType()),
        StructField("registrations", LongType()),
        StructField("controlled_shutdowns", LongType()),
        StructField("fences", LongType()),
        StructField("flaps", LongType()),
        StructField("fenced_ms", LongType()),
        StructField("longest_ms", LongType()),
        StructField("is_fenced", BooleanType()),
        StructField("is_registered", BooleanType()),
    ]
)
# A broker whose session ended, or that came back before it did, had not said that it would go.
_UNFORESEEN: Final = ("session ended", "registered again")
_LEGEND: Final = (
    ("good", "registered and not fenced"),
    ("plain", "fenced when it came, or stopping in a controlled way"),
    ("bad", "fenced because its session ended, or it restarted without a word"),
)
_IDS_MAX: Final = 8


def broker_totals(tables: Mapping[str, DataFrame]) -> DataFrame:
    """One row a broker (TOTALS_SCHEMA), from the tables of the job `brokers`.

    `fences` are those of a broker that was not fenced before; `fenced_ms` is all the time that it
    was, also before it was unfenced for the first time.
    """
    event = F.col("event")
    events = (
        tables["events"]
        .groupBy("broker_id")
        .agg(
            F.count_if((event == "registered") & ~F.col("from_snapshot")).alias("registrations"),
            F.count_if(event == "controlled shutdown").alias("controlled_shutdowns"),
        )
    )
    sessions = tables["sessions"].groupBy("broker_id").agg(F.bool_or("open").alias("is_registered"))
    fencing = (
        tables["fencing"]
        .groupBy("broker_id")
        .agg(
            F.count_if(F.col("cause") != "registered").alias("fences"),
            F.sum("duration_ms").alias("fenced_ms"),
            F.max("duration_ms").alias("longest_ms"),
            F.bool_or("open").alias("is_fenced"),
        )
    )
    flaps = tables["flapping"].groupBy("broker_id").agg(F.count("*").alias("flaps"))
    joined = events
    for other in (sessions, fencing, flaps):
        joined = joined.join(F.broadcast(other), "broker_id", "left")
    return joined.fillna(
        {
            "fences": 0,
            "flaps": 0,
            "fenced_ms": 0,
            "longest_ms": 0,
            "is_fenced": False,
            "is_registered": False,
        }
    ).select(*TOTALS_SCHEMA.names)


def brokers_section(
    tables: Mapping[str, DataFrame], totals: DataFrame, span: Span, values: Mapping[str, object]
) -> Section:
    """Who was there, who was fenced and why; `values` are what the tables were made with."""
    window_s = values["flap_window_s"]
    assert isinstance(window_s, int)
    return Section(
        "Brokers",
        "A session lasts from a broker's registration to its next one, or to its removal. While a"
        " broker is fenced it leads nothing. It flaps where it was fenced"
        f" {values['flap_count']} times or more within {duration(1000 * window_s)}.",
        (_timeline(tables, totals, span),),
        (_totals(totals), _flapping(tables["flapping"]), _fencing(tables["fencing"])),
        "quorate pipeline brokers --path DIR",
    )


def broker_verdicts(totals: DataFrame) -> list[HealthVerdict]:
    """Who is fenced at the end of the log, and who flapped in it."""
    fenced = top(totals.where("is_fenced"), _IDS_MAX, "broker_id")
    flapped = top(totals.where("flaps > 0"), _IDS_MAX, F.col("fences").desc(), "broker_id")
    return [
        HealthVerdict(
            "warning" if fenced.rows else "ok",
            "Fenced brokers",
            f"{grouped(fenced.row_count)} at the end of the log"
            f"{_named(fenced.rows, fenced.row_count)}",
        ),
        HealthVerdict(
            "warning" if flapped.rows else "ok",
            "Brokers that flapped",
            f"{grouped(flapped.row_count)} in the whole log"
            f"{_named(flapped.rows, flapped.row_count)}",
        ),
    ]


def _named(rows: list[Row], row_count: int) -> str:
    ids = ", ".join(str(row.broker_id) for row in rows)
    more = ", ..." if row_count > len(rows) else ""
    return f": {ids}{more}" if rows else ""


def _timeline(tables: Mapping[str, DataFrame], totals: DataFrame, span: Span) -> str:
    """A lane each for the brokers that were fenced longest, in the order of their ids."""
    worst = top(totals, LANES_MAX, F.col("fenced_ms").desc(), "broker_id")
    ids = sorted(row.broker_id for row in worst.rows)
    longest = (F.col("duration_ms").desc(), "broker_id", F.col("start").asc_nulls_first())
    sessions, fencing = (
        top(in_millis(tables[name].where(F.col("broker_id").isin(ids))), MARKS_MAX, *longest)
        for name in ("sessions", "fencing")
    )
    marks: dict[int, list[Interval]] = {broker_id: [] for broker_id in ids}
    for row in _by_start(sessions.rows):
        words = f"broker {row.broker_id}: registered for {duration(row.duration_ms)}"
        marks[row.broker_id].append(_mark(row, span, words, "good"))
    for row in _by_start(fencing.rows):
        words = f"broker {row.broker_id}: fenced for {duration(row.duration_ms)}, {row.cause}"
        kind = "bad" if row.cause in _UNFORESEEN else "plain"
        marks[row.broker_id].append(_mark(row, span, words, kind))
    more = worst.row_count - len(ids)
    left_out = f", the {len(ids)} that were fenced longest" if more else ""
    shown = [Lane(f"broker {broker_id}", tuple(found)) for broker_id, found in marks.items()]
    return lanes(f"Brokers over time{left_out}{fencing.left_out}", span, shown, _LEGEND)


def _by_start(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.start_ms or 0)


def _mark(row: Row, span: Span, words: str, kind: str) -> Interval:
    start = span.start if row.start_ms is None else utc(row.start_ms)
    return Interval(start, start + timedelta(milliseconds=row.duration_ms), words, kind)


def _totals(totals: DataFrame) -> Table:
    shown = top(totals, ROWS_MAX, F.col("fenced_ms").desc(), "broker_id")
    return Table(
        "Brokers, the longest fenced first",
        (
            "broker",
            "registrations",
            "controlled shutdowns",
            "fences",
            "flaps",
            "fenced for",
            "longest",
            "at the end",
        ),
        tuple(
            (
                identifier(row.broker_id),
                row.registrations,
                row.controlled_shutdowns,
                row.fences,
                row.flaps,
                Amount(duration(row.fenced_ms)),
                Amount(duration(row.longest_ms)),
                _state(row),
            )
            for row in shown.rows
        ),
        shown.row_count,
    )


def _state(row: Row) -> str:
    if row.is_fenced:
        return "fenced"
    return "unfenced" if row.is_registered else "unregistered"


def _flapping(flapping: DataFrame) -> Table:
    worst_first = (F.col("most_in_window").desc(), F.col("fence_count").desc())
    end_ms = F.unix_millis("end").alias("end_ms")
    shown = top(
        in_millis(flapping).select("*", end_ms), ROWS_MAX, *worst_first, "start", "broker_id"
    )
    return Table(
        "Flapping",
        ("broker", "first fence", "last fence", "fences", "most within the window"),
        tuple(
            (
                identifier(row.broker_id),
                moment(row.start_ms),
                moment(row.end_ms),
                row.fence_count,
                row.most_in_window,
            )
            for row in shown.rows
        ),
        shown.row_count,
    )


def _fencing(fencing: DataFrame) -> Table:
    order = (F.col("duration_ms").desc(), "broker_id", F.col("start").asc_nulls_first())
    shown = top(in_millis(fencing), ROWS_MAX, *order)
    return Table(
        "Longest fenced",
        ("broker", "lasted", "from", "why", "ended by"),
        tuple(
            (
                identifier(row.broker_id),
                Amount(duration(row.duration_ms)),
                moment(row.start_ms),
                row.cause,
                row.ended_by or "not yet",
            )
            for row in shown.rows
        ),
        shown.row_count,
    )
