"""Builds the sections on elections, partitions and record sizes, and their verdicts.

All results are collected to one machine, so each query of a table is limited and reports the number
of rows left out.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.pipeline.jobs import health
from quorate.pipeline.report.formatting import duration, format_int, format_value, share, size
from quorate.pipeline.report.page import Amount, HealthVerdict, Section, Table
from quorate.pipeline.report.plots import Bar, Interval, Lane, Span, bars, lanes
from quorate.pipeline.report.top_rows import (
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quorate.pipeline.report.commands import LogCommands

ELECTIONS: Final = "Who led"
BYTES: Final = "What the log consists of"
VOTERS: Final = "The voters' logs"
_STATUSES: Final = ("critical", "warning", "unknown", "ok")
# Titles for metrics, whose names are Kafka's.
_TITLES: Final = {
    health.LEADERS: "Leaders of one epoch",
    health.ELECTIONS: "Elections within an hour",
    health.LAG: "Lag of the voter furthest behind",
    health.SNAPSHOT_TIME: "Longest time that a snapshot took",
    health.ERRORS: "Damage",
    health.CLOCK: "Times that go back, in milliseconds",
}
_SECTIONS: Final = {
    health.LEADERS: ELECTIONS,
    health.ELECTIONS: ELECTIONS,
    health.LAG: VOTERS,
    health.ERRORS: VOTERS,
    health.CLOCK: ELECTIONS,
}
_IDLE: Final = (("idle", "may be idle time: this log has no NoOpRecord that would tell"),)


def elections_section(
    elections: DataFrame, span: Span, commands: LogCommands, *, has_noops: bool
) -> Section:
    """The section with leaders and times without one; with `has_noops` idle times are excluded."""
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
    kind = "bad" if has_noops else "idle"
    pauses = [
        Bar(f"before epoch {row.epoch}", row.leaderless_ms, duration(row.leaderless_ms), kind)
        for row in without.rows
    ]
    title = f"Longest times without a leader, at most{without.omitted_note}"
    counted = (
        "An idle leader of Kafka writes a NoOpRecord twice a second, so that is close."
        if has_noops
        else "A leader with nothing to write counts as well, as no NoOpRecord tells of it."
    )
    return Section(
        ELECTIONS,
        "Each epoch has one leader. Before it no controller led, for at most the time from the last"
        f" record of the epoch before to its own first one. {counted}",
        (
            lanes(f"Epochs by their leader{longest.omitted_note}", span, shown),
            *([bars(title, pauses, () if has_noops else _IDLE)] if pauses else ()),
        ),
        (_newest_epochs(elections, commands),),
    )


def _newest_epochs(elections: DataFrame, commands: LogCommands) -> Table:
    newest = top(in_millis(elections), ROWS_MAX, F.col("epoch").desc())
    return Table(
        "The newest epochs",
        (
            "epoch",
            "leader",
            "from",
            "lasted",
            "without a leader before, at most",
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
        commands.command("elections", order_by="epoch desc"),
    )


def records_section(by_type: DataFrame, commands: LogCommands) -> Section:
    """The section with the log's bytes by record type, from the table of job `sizes`."""
    shown = top(by_type, BARS_MAX, F.col("bytes").desc(), "record_type")
    return Section(
        BYTES,
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
                commands.command("sizes", "by_type"),
            ),
        ),
    )


def health_verdicts(table: DataFrame) -> list[HealthVerdict]:
    """A verdict for each row of job `health` that has one; other rows are in other sections."""
    return [
        HealthVerdict(
            "warning" if row.verdict == "warn" else row.verdict,
            _TITLES.get(row.metric, row.metric),
            row.what if row.value is None else f"{format_value(_whole(row.value))}: {row.what}",
            threshold_words(row.metric),
            _SECTIONS.get(row.metric, ""),
            row.metric,
        )
        for row in table.collect()
        if row.verdict is not None
    ]


def threshold_words(metric: str) -> str:
    """The numbers above which a metric is a warning and critical, as text."""
    threshold = health.THRESHOLDS.get(metric)
    if threshold is None:
        return ""
    bound = format_int(int(threshold))
    if metric in health.CRITICAL_AT_ONCE:
        return f"critical above {bound}"
    if metric in health.NEVER_CRITICAL:
        return f"warning above {bound}"
    worse = format_int(int(health.CRITICAL_FACTOR * threshold))
    return f"warning above {bound}, critical above {worse}"


def worst_first(verdicts: list[HealthVerdict]) -> list[HealthVerdict]:
    """Verdicts by their status, `critical` first."""
    return sorted(verdicts, key=lambda verdict: _STATUSES.index(verdict.status))


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
