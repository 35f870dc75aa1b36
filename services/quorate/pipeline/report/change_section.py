"""Builds the sections on changes: voters, features and configurations."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.controller.features.levels import METADATA_VERSION
from quorate.pipeline.jobs import features, membership
from quorate.pipeline.report.formatting import duration
from quorate.pipeline.report.page import Section, Table
from quorate.pipeline.report.plots import Interval, Lane, Span, lanes
from quorate.pipeline.report.top_rows import (
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
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from quorate.pipeline.report.commands import LogCommands

MEMBERS: Final = "Who voted"
SETTINGS: Final = "Features and configurations"
RECORD_TYPES: Final = (
    *features.RECORD_TYPES,
    *membership.RECORD_TYPES,
    "ConfigRecord",
    "TopicRecord",
    "RemoveTopicRecord",
)
"""The record types that both sections need."""


def members_section(tables: Mapping[str, DataFrame], span: Span, commands: LogCommands) -> Section:
    """The section with each voter's time as a voter; `tables` are those of job `membership`."""
    sets = top(in_millis(tables["voter_sets"]), MARKS_MAX, F.desc("start_offset"))
    by_voter: dict[int, list[Interval]] = {}
    for row in reversed(sets.rows):
        start = span.start if row.start_ms is None else utc(row.start_ms)
        end = start + timedelta(milliseconds=row.duration_ms)
        for voter in row.voters:
            words = f"voter {voter.id}: one of {row.voter_count} for {duration(row.duration_ms)}"
            by_voter.setdefault(voter.id, []).append(Interval(start, end, words))
    shown = [Lane(f"voter {voter}", tuple(marks)) for voter, marks in sorted(by_voter.items())]
    at_ms = F.unix_millis("timestamp").alias("at_ms")
    newest = top(tables["changes"].select("*", at_ms), ROWS_MAX, F.desc("offset"))
    return Section(
        MEMBERS,
        "A change of the voters adds, removes or moves one. A disk that was replaced is a voter"
        " removed and one added, with the same id and another directory.",
        (lanes(f"Voters over time{sets.omitted_note}", span, shown[:LANES_MAX]),),
        (
            Table(
                "The newest changes of the voters",
                ("at", "change", "voter", "directory", "epoch", "voters then"),
                tuple(
                    (
                        moment(row.at_ms),
                        row.change,
                        identifier(row.voter_id),
                        row.directory_id,
                        identifier(row.epoch),
                        row.voter_count,
                    )
                    for row in newest.rows
                ),
                newest.row_count,
                commands.command("membership", "changes", order_by="offset desc"),
            ),
        ),
    )


def settings_section(
    feature_levels: DataFrame, configs: DataFrame, commands: LogCommands
) -> Section:
    """The section with the newest feature levels and configs, from the jobs' tables."""
    at_ms = F.unix_millis("timestamp").alias("at_ms")
    levels = top(feature_levels.select("*", at_ms), ROWS_MAX, F.desc("offset"))
    return Section(
        SETTINGS,
        "What the log began with has no time where a snapshot tells it. The values of passwords are"
        " withheld.",
        (),
        (
            Table(
                "The newest levels of features",
                ("at", "feature", "level", "before", "epoch"),
                tuple(
                    (
                        moment(row.at_ms),
                        row.feature,
                        identifier(row.level),
                        identifier(row.previous_level),
                        identifier(row.epoch),
                    )
                    for row in levels.rows
                ),
                levels.row_count,
                commands.command("features", order_by="offset desc"),
            ),
            _configs(configs, commands),
        ),
    )


def levels_now(feature_levels: DataFrame) -> list[tuple[str, str]]:
    """Each feature and its level at the end of the log, as facts for the top of the page."""
    newest = feature_levels.groupBy("feature").agg(
        F.max_by("level", F.coalesce("offset", F.lit(-1))).alias("level")
    )
    is_first = F.col("feature").isin(METADATA_VERSION, features.KRAFT_VERSION)
    rows = top(newest, ROWS_MAX, is_first.desc(), F.desc("feature")).rows
    return [(row.feature, str(row.level)) for row in rows]


def _configs(configs: DataFrame, commands: LogCommands) -> Table:
    end_ms = F.unix_millis("end").alias("end_ms")
    newest = top(in_millis(configs).select("*", end_ms), ROWS_MAX, F.desc("start_offset"))
    return Table(
        "The newest configurations",
        ("resource", "config", "value", "before", "from", "until", "ended by"),
        tuple(
            (
                f"{row.resource_type} {row.resource}".rstrip(),
                row.config,
                row.value,
                row.previous_value,
                moment(row.start_ms),
                moment(row.end_ms),
                row.ended_by,
            )
            for row in newest.rows
        ),
        newest.row_count,
        commands.command("configs", order_by="start_offset desc"),
    )
