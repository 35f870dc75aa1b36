"""What the page shows: few rows of each table of the jobs, however long the log is.

Everything here is collected to one machine, so each look at a table is limited, and says how many
rows it left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.pipeline.jobs.intervals import counts_over_time
from quorate.pipeline.report.page import Section, Table, Verdict
from quorate.pipeline.report.plots import Bar, Lane, Mark, Span, bars, lanes, line
from quorate.pipeline.report.text import duration, grouped, size, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, Row

ROWS_MAX: Final = 15
_MARKS_MAX: Final = 400
_LANES_MAX: Final = 40
_BARS_MAX: Final = 20
_BINS: Final = 250
_STATUSES: Final = ("critical", "warning", "unknown", "ok")


@dataclass(frozen=True, slots=True)
class Shown:
    """The first rows of a table in some order, and how many it has."""

    rows: list[Row]
    row_count: int

    @property
    def left_out(self) -> str:
        """What a plot says of the rows that are not in it."""
        more = self.row_count - len(self.rows)
        return f" ({grouped(more)} shorter ones are left out)" if more else ""


def top(table: DataFrame, count: int, *order: Column | str) -> Shown:
    """The first `count` rows in that order."""
    rows = table.orderBy(*order).limit(count).collect()
    return Shown(rows, len(rows) if len(rows) < count else table.count())


def span_of(log: DataFrame) -> Span | None:
    """From the first to the last timestamp of a log; None where it is empty."""
    ends = log.agg(
        F.min(F.unix_millis("timestamp")).alias("start"),
        F.max(F.unix_millis("timestamp")).alias("end"),
    ).first()
    if ends is None or ends["start"] is None:
        return None
    return Span(_utc(ends["start"]), _utc(ends["end"]))


def elections_section(elections: DataFrame, span: Span) -> Section:
    """Who led, and how long nobody did."""
    longest = top(_in_millis(elections), _MARKS_MAX, F.col("duration_ms").desc(), "epoch")
    without = top(
        _in_millis(elections.where("leaderless_ms > 0")),
        _BARS_MAX,
        F.col("leaderless_ms").desc(),
        "epoch",
    )
    by_leader: dict[str, list[Mark]] = {}
    for row in sorted(longest.rows, key=lambda row: row.epoch):
        if not row.record_count:
            continue
        start = _utc(row.start_ms) if row.start_ms is not None else span.start
        end = start + timedelta(milliseconds=row.duration_ms or 0)
        label = "unknown" if row.leader_id is None else f"controller {row.leader_id}"
        words = f"epoch {row.epoch}: {label} for {duration(row.duration_ms or 0)}"
        by_leader.setdefault(label, []).append(Mark(start, end, words))
    shown = [Lane(label, tuple(marks)) for label, marks in sorted(by_leader.items())[:_LANES_MAX]]
    pauses = [
        Bar(f"before epoch {row.epoch}", row.leaderless_ms, duration(row.leaderless_ms), "bad")
        for row in without.rows
    ]
    newest = top(_in_millis(elections), ROWS_MAX, F.col("epoch").desc())
    return Section(
        "Who led",
        "Each epoch has one leader. What lies between two of them is time without one: from the"
        " last record of an epoch to the first of the next.",
        (
            lanes(f"Epochs by their leader{longest.left_out}", span, shown),
            bars(f"Longest times without a leader{without.left_out}", pauses),
        ),
        (
            Table(
                "The newest epochs",
                ("epoch", "leader", "from", "lasted", "nobody led before", "records", "voters"),
                tuple(
                    (
                        str(row.epoch),
                        _id(row.leader_id),
                        _moment(row.start_ms),
                        duration(row.duration_ms or 0),
                        None if row.leaderless_ms is None else duration(row.leaderless_ms),
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


def records_section(types: DataFrame) -> Section:
    """Which records the log consists of."""
    by_size = top(types, _BARS_MAX, F.col("size_bytes").desc(), "record_type")
    by_count = sorted(by_size.rows, key=lambda row: -row.record_count)
    return Section(
        "What the log consists of",
        "Records by type: how many, and the bytes of their keys and values.",
        (
            bars(
                "Bytes by record type",
                [
                    Bar(row.record_type, row.size_bytes, size(row.size_bytes))
                    for row in by_size.rows
                ],
            ),
            bars(
                "Records by type",
                [
                    Bar(row.record_type, row.record_count, grouped(row.record_count))
                    for row in by_count
                ],
            ),
        ),
        (),
        "quorate pipeline sizes --path DIR",
    )


def health_verdicts(health: DataFrame) -> list[Verdict]:
    """The table of the job `health`, a verdict each."""
    return [
        Verdict(
            "warning" if row.verdict == "warn" else row.verdict,
            row.metric,
            row.what if row.value is None else f"{told(_whole(row.value))}: {row.what}",
        )
        for row in health.collect()
    ]


def partition_verdicts(partitions: Mapping[str, DataFrame]) -> list[Verdict]:
    """How partitions stand at the end of the log."""
    offline = partitions["offline"].where("open").count()
    under = partitions["under_replicated"].where("open").count()
    sums = partitions["churn"].agg(F.sum("unclean_elections").alias("count")).first()
    unclean = (sums["count"] if sums is not None else None) or 0
    return [
        Verdict(
            "critical" if offline else "ok",
            "Partitions without a leader",
            f"{grouped(offline)} at the end of the log",
        ),
        Verdict(
            "warning" if under else "ok",
            "Under-replicated partitions",
            f"{grouped(under)} at the end of the log",
        ),
        Verdict(
            "critical" if unclean else "ok",
            "Unclean elections",
            f"{grouped(unclean)} in the whole log; each may have lost records",
        ),
    ]


def worst_first(verdicts: list[Verdict]) -> list[Verdict]:
    """What has to be done something about comes first."""
    return sorted(verdicts, key=lambda verdict: _STATUSES.index(verdict.status))


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


def _counts(intervals: DataFrame, span: Span) -> list[tuple[datetime, float]]:
    counts = counts_over_time(intervals, _BINS).select(F.unix_millis("at").alias("ms"), "count")
    points = [(_utc(row.ms), float(row["count"])) for row in counts.collect()]
    return [(span.start, 0.0), *points] if points else []


def _intervals(
    title: str, intervals: DataFrame, order: Sequence[Column | str], others: tuple[str, ...]
) -> Table:
    shown = top(_in_millis(intervals), ROWS_MAX, *order)
    return Table(
        title,
        (
            "topic",
            "partition",
            "from",
            "lasted",
            "ended",
            *(name.replace("_", " ") for name in others),
        ),
        tuple(
            (
                row.topic,
                str(row.partition),
                _moment(row.start_ms),
                duration(row.duration_ms),
                not row.open,
                *(_id(row[name]) for name in others),
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


def _in_millis(table: DataFrame) -> DataFrame:
    """With `start_ms`, since Python would read a timestamp in the zone of this machine."""
    return table.withColumn("start_ms", F.unix_millis("start"))


def _id(value: object) -> object:
    return str(value) if isinstance(value, int) else value


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else _utc(milliseconds)
