"""Builds the section on brokers and its verdicts: fenced intervals, and flapping."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.pipeline.report.commands import ids_in_sql
from quorate.pipeline.report.formatting import duration, format_int, ids_named
from quorate.pipeline.report.page import Amount, HealthVerdict, Section, Table
from quorate.pipeline.report.plots import Interval, Lane, Span, lanes
from quorate.pipeline.report.top_rows import (
    LANES_MAX,
    MARKS_MAX,
    RECENT,
    ROWS_MAX,
    identifier,
    in_millis,
    moment,
    top,
    utc,
)
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, Row

    from quorate.pipeline.report.commands import LogCommands

BROKERS: Final = "Brokers"
# Causes without a controlled shutdown: the session ended, or the broker restarted before that.
_UNFORESEEN: Final = ("session ended", "registered again")
_LEGEND: Final = (
    ("good", "registered and not fenced"),
    ("plain", "fenced when it came, or stopping in a controlled way"),
    ("bad", "fenced because its session ended, or it restarted without a word"),
)


@value_type
class BrokerIds:
    """The brokers at the end of the log, by their state.

    `is_whole` is True if the log names all brokers ever registered, because it has the first record
    or a snapshot. For other logs a broker counts as gone only if a record removes it.
    """

    registered: tuple[int, ...]
    fenced: tuple[int, ...]
    gone: tuple[int, ...]
    is_whole: bool

    @property
    def gone_replicas(self) -> str:
        """SQL for the elements of column `replicas` whose brokers are not registered."""
        if self.is_whole:
            return f"array_except(replicas, {ids_in_sql(self.registered)})"
        return f"array_intersect(replicas, {ids_in_sql(self.gone)})"


def broker_ids(totals: DataFrame, *, is_whole: bool) -> BrokerIds:
    """The brokers in the table `totals` of the job `brokers`."""
    rows = totals.select("broker_id", "is_registered", "is_fenced").orderBy("broker_id").collect()
    return BrokerIds(
        tuple(row.broker_id for row in rows if row.is_registered),
        tuple(row.broker_id for row in rows if row.is_fenced),
        tuple(row.broker_id for row in rows if not row.is_registered),
        is_whole,
    )


def brokers_section(
    tables: Mapping[str, DataFrame],
    span: Span,
    values: Mapping[str, object],
    commands: LogCommands,
) -> Section:
    """The section with sessions and fenced times; `values` are the options of the tables."""
    window_s = values["flap_window_s"]
    assert isinstance(window_s, int)
    return Section(
        BROKERS,
        "A session lasts from a broker's registration to its next one, or to its removal. While a"
        " broker is fenced it leads nothing. It flaps where it was fenced"
        f" {values['flap_count']} times or more within {duration(1000 * window_s)}.",
        (_timeline(tables, span),),
        (
            _totals(tables["totals"], commands),
            _flapping(tables["flapping"], commands),
            _fencing(tables["fencing"], commands),
        ),
    )


def broker_verdicts(ids: BrokerIds, flapping: DataFrame, span: Span) -> list[HealthVerdict]:
    """Verdicts on brokers that are fenced at the end of the log, or flapped in its last day."""
    recent_ms = int((span.end - RECENT).timestamp() * 1000)
    is_recent = F.unix_millis(F.max("end")) > recent_ms
    rows = flapping.groupBy("broker_id").agg(is_recent.alias("is_recent")).collect()
    recent = sorted(row.broker_id for row in rows if row.is_recent)
    return [
        HealthVerdict(
            "warning" if ids.fenced else "ok",
            "Fenced brokers",
            f"{format_int(len(ids.fenced))} at the end of the log{ids_named(ids.fenced)}",
            "warning above 0",
            BROKERS,
        ),
        HealthVerdict(
            "warning" if recent else "ok",
            "Brokers that flapped",
            f"{format_int(len(recent))} in the last day{ids_named(recent)};"
            f" {format_int(len(rows))} in the whole log",
            "warning above 0 in the last day",
            BROKERS,
        ),
    ]


def _timeline(tables: Mapping[str, DataFrame], span: Span) -> str:
    """One lane for each of the brokers that were fenced longest, in the order of their ids."""
    worst = top(tables["totals"], LANES_MAX, F.col("fenced_ms").desc(), "broker_id")
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
    return lanes(f"Brokers over time{left_out}{fencing.omitted_note}", span, shown, _LEGEND)


def _by_start(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.start_ms or 0)


def _mark(row: Row, span: Span, words: str, kind: str) -> Interval:
    start = span.start if row.start_ms is None else utc(row.start_ms)
    return Interval(start, start + timedelta(milliseconds=row.duration_ms), words, kind)


def _totals(totals: DataFrame, commands: LogCommands) -> Table:
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
        commands.command("brokers", "totals", order_by="fenced_ms desc,broker_id"),
    )


def _state(row: Row) -> str:
    if row.is_fenced:
        return "fenced"
    return "unfenced" if row.is_registered else "unregistered"


def _flapping(flapping: DataFrame, commands: LogCommands) -> Table:
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
        commands.command(
            "brokers", "flapping", order_by="most_in_window desc,fence_count desc,start"
        ),
    )


def _fencing(fencing: DataFrame, commands: LogCommands) -> Table:
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
        commands.command("brokers", "fencing", order_by="duration_ms desc"),
    )
