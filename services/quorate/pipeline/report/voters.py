"""What the page shows where several voters' directories are read: lag, damage, where logs part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.report.page import HealthVerdict, Section, Table
from quorate.pipeline.report.plots import Bar, bars
from quorate.pipeline.report.shown import BARS_MAX, ROWS_MAX, identifier, top
from quorate.pipeline.report.text import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def voters_section(tables: Mapping[str, DataFrame]) -> Section:
    """How far each log reaches; `tables` are those of the job `compare`."""
    shown = top(tables["logs"], BARS_MAX, F.col("lag").desc_nulls_first(), "node_id")
    lag = [
        Bar(f"node {row.node_id}", row.lag, _records(row.lag), "bad" if row.lag else "plain")
        for row in shown.rows
        if row.lag is not None
    ]
    return Section(
        "The voters' logs",
        "Lag is how many records a log ends before the longest. These are all that the directories"
        " hold, committed or not; the rest of the page is about the log that reaches furthest.",
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
            ),
            _divergence(tables["divergence"]),
        ),
        "quorate pipeline compare --path DIR --path DIR",
    )


def voter_verdict(divergence: DataFrame) -> HealthVerdict:
    """Whether two logs part. Those of one epoch cannot: its leader wrote each offset once."""
    parting = divergence.where("first_offset is not null")
    in_one_epoch = F.col("epoch") == F.col("other_epoch")
    first = parting.orderBy(in_one_epoch.desc(), "first_offset", "node_id", "other_id").first()
    title = "Voters' logs beside each other"
    if first is None:
        return HealthVerdict("ok", title, "what two of them have, they have alike")
    place = (
        f"nodes {first.node_id} and {first.other_id} part at offset {grouped(first.first_offset)}"
    )
    if first.epoch == first.other_epoch:
        words = f"{place} within epoch {first.epoch}: one of them is not what its leader wrote"
        return HealthVerdict("critical", title, words)
    return HealthVerdict(
        "warning", title, f"{place}; usual above what is committed, where the next leader mends it"
    )


def _divergence(divergence: DataFrame) -> Table:
    order = (F.col("first_offset").asc_nulls_last(), "node_id", "other_id")
    shown = top(divergence, ROWS_MAX, *order)
    return Table(
        "Two logs beside each other",
        ("nodes", "part at", "epochs there", "records of both", "of which differ"),
        tuple(
            (
                f"{row.node_id} and {row.other_id}",
                "nowhere" if row.first_offset is None else grouped(row.first_offset),
                None if row.first_offset is None else f"{row.epoch} and {row.other_epoch}",
                row.common_count,
                row.differing_count,
            )
            for row in shown.rows
        ),
        shown.row_count,
    )


def _records(count: int) -> str:
    return f"{grouped(count)} record{'' if count == 1 else 's'}"
