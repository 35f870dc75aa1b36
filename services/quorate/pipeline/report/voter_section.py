"""Builds the section that compares the voters' logs: lag, damage, divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.jobs.health import DIVERGENCE, LAG, THRESHOLDS
from quorate.pipeline.report.formatting import format_int
from quorate.pipeline.report.page import HealthVerdict, Section, Table
from quorate.pipeline.report.plots import Bar, bars
from quorate.pipeline.report.sections import VOTERS, threshold_words
from quorate.pipeline.report.top_rows import BARS_MAX, ROWS_MAX, identifier, top

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from quorate.pipeline.report.commands import LogCommands


def voters_section(tables: Mapping[str, DataFrame], commands: LogCommands) -> Section:
    """The section with the end of each log; `tables` are those of the job `compare`."""
    shown = top(tables["logs"], BARS_MAX, F.col("lag").desc(), "node_id")
    lag = [
        Bar(f"node {row.node_id}", row.lag, _records(row.lag), _lag_kind(row.lag))
        for row in shown.rows
        if row.lag is not None
    ]
    return Section(
        VOTERS,
        "Lag is how many records a log ends before the longest. These are all that the directories"
        " hold, committed or not; the rest of the page is about what most of them hold.",
        (bars("Lag", lag),),
        (
            Table(
                "Each log",
                (
                    "node",
                    "begins at",
                    "ends at",
                    "last epoch",
                    "lag",
                    "missing",
                    "damaged",
                    "first damage",
                ),
                tuple(
                    (
                        identifier(row.node_id),
                        row.start_offset,
                        row.end_offset,
                        identifier(row.last_epoch),
                        row.lag,
                        row.missing_count,
                        row.damage_count,
                        row.first_damage,
                    )
                    for row in shown.rows
                ),
                shown.row_count,
                commands.command("compare", "logs", order_by="lag desc"),
            ),
            _divergence(tables["divergence"], commands),
        ),
    )


def voter_verdict(divergence: DataFrame) -> HealthVerdict:
    """The verdict for metric DIVERGENCE of job `health`, with the offset where two logs diverge."""
    parting = divergence.where("first_offset is not null")
    order = (F.desc("breaks_log_matching"), "first_offset", "node_id", "other_id")
    first = parting.orderBy(*order).first()
    if first is None:
        status, words = "ok", "what two of them have, they have alike"
    else:
        status = "critical" if first.breaks_log_matching else "ok"
        words = (
            f"nodes {first.node_id} and {first.other_id} part at offset"
            f" {format_int(first.first_offset)}"
        )
        words += (
            ", below an epoch that both have: one of them lost or changed what was committed"
            if first.breaks_log_matching
            else f" in epochs {first.epoch} and {first.other_epoch}: a tail that was never"
            " committed, which the next leader mends"
        )
    return HealthVerdict(
        status,
        "Voters' logs beside each other",
        words,
        threshold_words(DIVERGENCE),
        VOTERS,
        DIVERGENCE,
    )


def _divergence(divergence: DataFrame, commands: LogCommands) -> Table:
    order = (F.col("first_offset").asc_nulls_last(), "node_id", "other_id")
    shown = top(divergence, ROWS_MAX, *order)
    return Table(
        "Two logs beside each other",
        ("nodes", "part at", "epochs there", "records of both", "of which differ"),
        tuple(
            (
                f"{row.node_id} and {row.other_id}",
                "nowhere" if row.first_offset is None else format_int(row.first_offset),
                None if row.first_offset is None else f"{row.epoch} and {row.other_epoch}",
                row.common_count,
                row.differing_count,
            )
            for row in shown.rows
        ),
        shown.row_count,
        commands.command("compare", "divergence", order_by="first_offset"),
    )


def _lag_kind(lag: int) -> str:
    threshold = THRESHOLDS[LAG]
    assert threshold is not None
    return "bad" if lag > threshold else "plain"


def _records(count: int) -> str:
    return f"{format_int(count)} record{'' if count == 1 else 's'}"
