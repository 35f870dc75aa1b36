"""What the page shows: few rows of each table of the jobs, however long the log is.

Everything here is collected to one machine, so each look at a table is limited, and says how many
rows it left out.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.pipeline.jobs import health
from quorate.pipeline.jobs.intervals import counts_over_time
from quorate.pipeline.report.page import Amount, HealthVerdict, Section, Table
from quorate.pipeline.report.plots import Bar, Interval, Lane, Span, bars, lanes, line
from quorate.pipeline.report.shown import (
    BARS_MAX,
    LANES_MAX,
    MARKS_MAX,
    ROWS_MAX,
    identifier,
    in_millis,
    moment,
    top,
    utc,
)
from quorate.pipeline.report.text import duration, grouped, share, size, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

_BINS: Final = 250
_STATUSES: Final = ("critical", "warning", "unknown", "ok")
# The metrics have Kafka's names; not everybody who reads the page knows them by heart.
_TITLES: Final = {
    health.LEADERS: "Leaders of one epoch",
    health.ELECTIONS: "Elections within an hour",
    health.END_OFFSET: "End of the log",
    health.LAG: "Lag of the voter furthest behind",
    health.SNAPSHOT_TIME: "Longest time that a snapshot took",
    health.ERRORS: "Damage",
}


def elections_section(elections: DataFrame, span: Span) -> Section:
    """Who led, and how long nobody did."""
    longest = top(in_millis(elections), MARKS_MAX, F.col("duration_ms").desc(), "epoch")
    without = top(
        in_millis(elections.where("leaderless_ms > 0")),
        BARS_MAX,
        F.col("leaderless_ms").desc(),
        "epoch",
    )
    by_leader: dict[str, list[Interval]] = {}
    for row in sorted(longest.rows, key=lambda row: row.epoch):
        if not row.record_count:
            continue
        start = utc(row.start_ms) if row.start_ms is not None else span.start
        end = start + timedelta(milliseconds=row.duration_ms or 0)
        label = "unknown" if row.leader_id is None else f"controller {row.leader_id}"
        words = f"epoch {row.epoch}: {label} for {duration(row.duration_ms or 0)}"
        by_leader.setdefault(label, []).append(Interval(start, end, words))
    shown = [Lane(label, tuple(marks)) for label, marks in sorted(by_leader.items())[:LANES_MAX]]
    pauses = [
        Bar(f"before epoch {row.epoch}", row.leaderless_ms, duration(row.leaderless_ms), "bad")
        for row in without.rows
    ]
    newest = top(in_millis(elections), ROWS_MAX, F.col("epoch").desc())
    return Section(
        "Who led",
        "Each epoch has one leader. Between two of them nobody led for at most as long as from the"
        " last record of one to the first of the next; a leader may have had nothing to write.",
        (
            lanes(f"Epochs by their leader{longest.left_out}", span, shown),
            bars(f"Longest times without a leader, at most{without.left_out}", pauses),
        ),
        (
            Table(
                "The newest epochs",
                (
                    "epoch",
                    "leader",
                    "from",
                    "lasted",
                    "nobody led before, at most",
                    "records",
                    "voters",
                ),
                tuple(
                    (
                        str(row.epoch),
                        identifier(row.leader_id),
                        moment(row.start_ms),
                        Amount(duration(row.duration_ms or 0)),
                        None if row.leaderless_ms is None else Amount(duration(row.leaderless_ms)),
                        row.record_count,
                        row.voters,
                    )
                    for row in newest.rows
                ),
                newest.row_count,
            ),
        ),
        "quorate pipeline elections --path DIR",
    )


def partitions_section(tables: Mapping[str, DataFrame], span: Span) -> Section:
    """When partitions lacked replicas or a leader, and which topics changed most."""
    under, offline = tables["under_replicated"], tables["offline"]
    longest = F.col("duration_ms").desc()
    order = (longest, "topic", "partition", "start_offset")
    return Section(
        "Partitions",
        "A partition is under-replicated while fewer replicas are in sync than it has, and offline"
        " while nobody leads it. Those that are being moved count as under-replicated until their"
        " new replicas have caught up.",
        tuple(
            line(title, span, points)
            for title, intervals in (
                ("Under-replicated partitions", under),
                ("Partitions without a leader", offline),
            )
            if (points := _counts(intervals, span))
        ),
        (
            _intervals("Longest under-replicated", under, order, ("missing",)),
            _intervals("Longest without a leader", offline, order, ("last_leader", "next_leader")),
            _churn(tables["churn"]),
        ),
        "quorate pipeline partitions --path DIR",
    )


def records_section(by_type: DataFrame) -> Section:
    """Where the log's bytes go, by the table of the job `sizes`."""
    shown = top(by_type, BARS_MAX, F.col("bytes").desc(), "record_type")
    return Section(
        "What the log consists of",
        "Bytes are those on the disk: records with their framing, and the headers of batches apart."
        " A snapshot at the end of the log would keep what is alive then, about.",
        (
            bars(
                "Bytes by record type",
                [
                    Bar(row.record_type, row.bytes, f"{size(row.bytes)}, {share(row.share or 0)}")
                    for row in shown.rows
                ],
            ),
        ),
        (
            Table(
                "Records by type",
                ("type", "records", "bytes", "share", "alive", "bytes alive", "bytes saved"),
                tuple(
                    (
                        row.record_type,
                        row.record_count,
                        Amount(size(row.bytes)),
                        Amount(share(row.share or 0)),
                        row.live_count,
                        Amount(size(row.live_bytes)),
                        Amount(size(row.saved_bytes)),
                    )
                    for row in shown.rows
                ),
                shown.row_count,
            ),
        ),
        "quorate pipeline sizes --path DIR",
    )


def health_verdicts(table: DataFrame) -> list[HealthVerdict]:
    """The table of the job `health`, a verdict each."""
    return [
        HealthVerdict(
            "warning" if row.verdict == "warn" else row.verdict,
            _TITLES.get(row.metric, row.metric),
            row.what if row.value is None else f"{told(_whole(row.value))}: {row.what}",
            row.metric,
        )
        for row in table.collect()
        if row.verdict is not None
    ]


def partition_verdicts(partitions: Mapping[str, DataFrame]) -> list[HealthVerdict]:
    """How partitions stand at the end of the log."""
    offline = partitions["offline"].where("open").count()
    under = partitions["under_replicated"].where("open").count()
    sums = partitions["churn"].agg(F.sum("unclean_elections").alias("count")).first()
    unclean = (sums["count"] if sums is not None else None) or 0
    return [
        HealthVerdict(
            "critical" if offline else "ok",
            "Partitions without a leader",
            f"{grouped(offline)} at the end of the log",
        ),
        HealthVerdict(
            "warning" if under else "ok",
            "Under-replicated partitions",
            f"{grouped(under)} at the end of the log",
        ),
        HealthVerdict(
            "critical" if unclean else "ok",
            "Unclean elections",
            f"{grouped(unclean)} in the whole log; each may have lost records",
        ),
    ]


def worst_first(verdicts: list[HealthVerdict]) -> list[HealthVerdict]:
    """What has to be done something about comes first."""
    return sorted(verdicts, key=lambda verdict: _STATUSES.index(verdict.status))


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


def _counts(intervals: DataFrame, span: Span) -> list[tuple[datetime, float]]:
    counts = counts_over_time(intervals, _BINS).select(F.unix_millis("at").alias("ms"), "count")
    points = [(utc(row.ms), float(row["count"])) for row in counts.collect()]
    return [(span.start, 0.0), *points] if points else []


def _intervals(
    title: str, intervals: DataFrame, order: Sequence[Column | str], others: tuple[str, ...]
) -> Table:
    shown = top(in_millis(intervals), ROWS_MAX, *order)
    return Table(
        title,
        (
            "topic",
            "partition",
            "lasted",
            "from",
            "ended",
            *(name.replace("_", " ") for name in others),
        ),
        tuple(
            (
                row.topic,
                str(row.partition),
                Amount(duration(row.duration_ms)),
                moment(row.start_ms),
                not row.open,
                *(identifier(row[name]) for name in others),
            )
            for row in shown.rows
        ),
        shown.row_count,
    )


def _churn(churn: DataFrame) -> Table:
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
    )
