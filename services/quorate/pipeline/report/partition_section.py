"""Builds the section on partitions: offline, uncleanly led, under-replicated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.pipeline.jobs.intervals import counts_over_time
from quorate.pipeline.report.commands import ids_in_sql, iso_time
from quorate.pipeline.report.formatting import duration, format_int, ids_listed, ids_named
from quorate.pipeline.report.page import Amount, HealthVerdict, Section, Table
from quorate.pipeline.report.plots import Span, line
from quorate.pipeline.report.top_rows import (
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
    from collections.abc import Mapping
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, Row

    from quorate.pipeline.report.broker_section import BrokerIds
    from quorate.pipeline.report.commands import LogCommands

PARTITIONS: Final = "Partitions"
_BINS: Final = 250
_PEAKS_MAX: Final = 3
# Peaks of one plot are at least its time span divided by this apart.
_PEAKS_APART: Final = 40
_LASTING: Final = "at the end of the log"
# Reasons why replicas are missing; the first one that holds counts.
_WHY: Final = {
    "gone": "lack replicas on brokers that are not registered ({}) and stay so until moved",
    "fenced": "wait for brokers that are fenced ({})",
    "moving": "are being moved ({})",
    "behind": "have replicas that are behind ({})",
}


@value_type
class _Plot:
    """The number of intervals of a table over time."""

    title: str
    table: str
    points: list[tuple[datetime, float]]


def partitions_section(
    tables: Mapping[str, DataFrame],
    lacking: DataFrame,
    brokers: BrokerIds,
    span: Span,
    commands: LogCommands,
) -> Section:
    """The section with partitions without replicas or a leader, and the topics that changed most.

    `tables` are those of the job, `lacking` is the result of `lacking_replicas`.
    """
    plots = [
        _Plot(title, name, _counts(tables[name], span))
        for title, name in (
            ("Under-replicated partitions", "under_replicated"),
            ("Partitions without a leader", "offline"),
        )
    ]
    return Section(
        PARTITIONS,
        "A partition is under-replicated while fewer replicas are in sync than it has, and offline"
        " while it has no leader. Those that are being moved count as under-replicated until their"
        " new replicas have caught up.",
        tuple(line(plot.title, span, plot.points, "partitions") for plot in plots if plot.points),
        (
            *(_peaks(plot, span, commands) for plot in plots if plot.points),
            _intervals("Longest without a leader", tables, "offline", commands),
            _unclean(tables["unclean"], commands),
            _gone(lacking, brokers, commands),
            _intervals("Longest under-replicated", tables, "under_replicated", commands),
            _churn(tables["churn"], commands),
        ),
    )


# --- verdicts -------------------------------------------------------------------------------------


def lacking_replicas(history: DataFrame, brokers: BrokerIds) -> DataFrame:
    """The partitions with replicas that are not in sync, or not on registered brokers.

    One row each, as of the end of the log: topic, partition, leader, replicas, isr; `missing` has
    the replicas not in the ISR, `gone` those on unregistered brokers, `why` the reason for missing
    ones (`gone`, `fenced`, `moving`, `behind`, or null if none is missing), and `awaited` the
    brokers of the missing replicas.
    """
    missing = F.array_except("replicas", "isr")
    none = F.array().cast("array<int>")
    fenced = F.expr(ids_in_sql(brokers.fenced))
    rows = history.where("open").select(
        "topic",
        "partition",
        "leader",
        "replicas",
        "isr",
        F.coalesce(missing, none).alias("missing"),
        F.coalesce(F.expr(brokers.gone_replicas), none).alias("gone"),
        (F.size("adding_replicas") > 0).alias("is_moving"),
    )
    why = (
        F.when(F.size("missing") == 0, F.lit(None))
        .when(F.arrays_overlap("missing", "gone"), "gone")
        .when(F.arrays_overlap("missing", fenced), "fenced")
        .when(F.col("is_moving"), "moving")
        .otherwise("behind")
    )
    awaited = (
        F.when(F.col("why") == "gone", F.array_intersect("missing", "gone"))
        .when(F.col("why") == "fenced", F.array_intersect("missing", fenced))
        .otherwise(F.col("missing"))
    )
    lacking = rows.where((F.size("missing") > 0) | (F.size("gone") > 0))
    return lacking.withColumn("why", why).withColumn("awaited", awaited)


def partition_verdicts(
    partitions: Mapping[str, DataFrame], lacking: DataFrame, span: Span
) -> list[HealthVerdict]:
    """Verdicts on partitions at the end of the log, and on unclean elections before it."""
    offline = partitions["offline"].where("open").count()
    found = lacking.agg(
        F.count("why").alias("under"),
        *(F.count_if(F.col("why") == why).alias(why) for why in _WHY),
        *(
            _distinct(F.when(F.col("why") == why, F.col("awaited"))).alias(f"{why}_awaited")
            for why in _WHY
        ),
        F.count_if(F.size("gone") > 0).alias("with_gone"),
        _distinct(F.col("gone")).alias("gone_ids"),
    ).first()
    assert found is not None
    return [
        HealthVerdict(
            "critical" if offline else "ok",
            "Partitions without a leader",
            f"{format_int(offline)} {_LASTING}",
            "critical above 0",
            PARTITIONS,
        ),
        _unclean_verdict(partitions["unclean"], span),
        HealthVerdict(
            "warning" if found.under else "ok",
            "Under-replicated partitions",
            f"{format_int(found.under)} {_LASTING}{_reasons(found)}",
            "warning above 0",
            PARTITIONS,
        ),
        HealthVerdict(
            "warning" if found.with_gone else "ok",
            "Replicas on brokers that are not registered",
            f"in {format_int(found.with_gone)} partitions {_LASTING}{ids_named(found.gone_ids)}",
            "warning above 0",
            PARTITIONS,
        ),
    ]


def _distinct(ids: Column) -> Column:
    """All ids in the arrays of a column, each once."""
    return F.array_sort(F.array_distinct(F.flatten(F.collect_set(ids))))


def _reasons(found: Row) -> str:
    reasons = [
        f"{format_int(found[why])} {words.format(ids_listed(found[f'{why}_awaited']))}"
        for why, words in _WHY.items()
        if found[why]
    ]
    return f": {'; '.join(reasons)}" if reasons else ""


def _unclean_verdict(unclean: DataFrame, span: Span) -> HealthVerdict:
    """The verdict on unclean elections of the last day, with the number of all in its text."""
    at_ms = F.unix_millis("timestamp")
    recent_ms = int((span.end - RECENT).timestamp() * 1000)
    found = unclean.agg(
        F.count("*").alias("count"),
        F.count_if(at_ms > recent_ms).alias("recent"),
        F.max(at_ms).alias("last_ms"),
    ).first()
    assert found is not None
    recent, whole = format_int(found.recent), format_int(found["count"])
    last = ""
    if found["count"]:
        at = f"{utc(found.last_ms):%Y-%m-%dT%H:%M:%SZ}"
        last = f", the last at {at}; each may have lost records"
    return HealthVerdict(
        "critical" if found.recent else "ok",
        "Unclean elections",
        f"{recent} in the last day, {whole} in the whole log{last}",
        "critical above 0 in the last day",
        PARTITIONS,
    )


# --- tables ---------------------------------------------------------------------------------------


def _counts(intervals: DataFrame, span: Span) -> list[tuple[datetime, float]]:
    counts = counts_over_time(intervals, _BINS).select(F.unix_millis("at").alias("ms"), "count")
    points = [(utc(row.ms), float(row["count"])) for row in counts.collect()]
    return [(span.start, 0.0), *points] if points else []


def _peaks(plot: _Plot, span: Span, commands: LogCommands) -> Table:
    """The highest points of a plot, and the command that lists the partitions of the first."""
    apart = (span.end - span.start) / _PEAKS_APART
    found: list[tuple[datetime, int]] = []
    for at, level in sorted(plot.points, key=lambda point: (-point[1], point[0])):
        # A plateau counts once.
        if level and all(abs(at - other) > apart for other, _ in found):
            found.append((at, int(level)))
    found = found[:_PEAKS_MAX]
    then = f'"{iso_time(found[0][0])}"' if found else ""
    where = f"start <= {then} and (open or end > {then})"
    return Table(
        f"{plot.title}: the highest points",
        ("at", "partitions"),
        tuple(found),
        len(found),
        commands.command("partitions", plot.table, where=where),
        "The partitions of the first point",
    )


def _intervals(
    title: str, tables: Mapping[str, DataFrame], name: str, commands: LogCommands
) -> Table:
    others = {"under_replicated": ("missing",), "offline": ("last_leader", "next_leader")}[name]
    order = (F.col("duration_ms").desc(), "topic", "topic_id", "partition", "start_offset")
    shown = top(in_millis(tables[name]), ROWS_MAX, *order)
    return Table(
        title,
        (
            "topic",
            "partition",
            "lasted",
            "from",
            "ended",
            *(other.replace("_", " ") for other in others),
        ),
        tuple(
            (
                row.topic,
                str(row.partition),
                Amount(duration(row.duration_ms)),
                moment(row.start_ms),
                not row.open,
                *(identifier(row[other]) for other in others),
            )
            for row in shown.rows
        ),
        shown.row_count,
        commands.command("partitions", name, order_by="duration_ms desc"),
    )


def _unclean(unclean: DataFrame, commands: LogCommands) -> Table:
    at_ms = F.unix_millis("timestamp").alias("at_ms")
    order = (F.col("offset").desc(), "topic", "topic_id", "partition")
    shown = top(unclean.select("*", at_ms), ROWS_MAX, *order)
    return Table(
        "The newest unclean elections",
        ("topic", "partition", "at", "offset", "leader", "in sync before", "in sync after"),
        tuple(
            (
                row.topic,
                str(row.partition),
                moment(row.at_ms),
                row.offset,
                identifier(row.leader),
                row.isr_before,
                row.isr_after,
            )
            for row in shown.rows
        ),
        shown.row_count,
        commands.command("partitions", "unclean", order_by="offset desc"),
    )


def _gone(lacking: DataFrame, brokers: BrokerIds, commands: LogCommands) -> Table:
    shown = top(lacking.where(F.size("gone") > 0), ROWS_MAX, "topic", "partition")
    return Table(
        "Replicas on brokers that are not registered",
        ("topic", "partition", "leader", "replicas", "in sync", "not registered"),
        tuple(
            (
                row.topic,
                str(row.partition),
                identifier(row.leader),
                row.replicas,
                row.isr,
                row.gone,
            )
            for row in shown.rows
        ),
        shown.row_count,
        commands.command("image", "partitions", where=f"size({brokers.gone_replicas}) > 0"),
    )


def _churn(churn: DataFrame, commands: LogCommands) -> Table:
    changes = F.col("leader_changes") + F.col("isr_shrinks") + F.col("isr_expands")
    shown = top(churn, ROWS_MAX, changes.desc(), "topic", "topic_id")
    columns = (
        "topic",
        "partitions",
        "leader_changes",
        "unclean_elections",
        "isr_shrinks",
        "isr_expands",
        "reassignments",
        "removed",
    )
    return Table(
        "Topics that changed most",
        tuple(name.replace("_", " ") for name in columns),
        tuple(tuple(row[name] for name in columns) for row in shown.rows),
        shown.row_count,
        commands.command("partitions", "churn"),
    )
