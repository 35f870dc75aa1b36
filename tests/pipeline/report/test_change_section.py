"""Voters, features and configurations on the page: the newest first, and what is so now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.jobs import configs, features, membership
from quorate.pipeline.jobs.cached_rows import cache_rows
from quorate.pipeline.report.change_section import (
    RECORD_TYPES,
    levels_now,
    members_section,
    settings_section,
)
from quorate.pipeline.report.commands import LogCommands
from quorate.pipeline.report.plots import Span
from quorate.pipeline.report.top_rows import utc
from tests.pipeline.log_frames import START_MS, Log, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

HOUR_MS = 3_600_000


def voters(log: Log, ids: Sequence[int]) -> None:
    told = [{"voterId": each, "voterDirectoryId": f"d{each}", "endpoints": []} for each in ids]
    log.add("VotersRecord", {"version": 0, "voters": told}, is_control=True)


def config(log: Log, value: str | None) -> None:
    data = {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": value}
    log.add("ConfigRecord", data)


def a_log() -> Log:
    """Voter 3 comes, 1 leaves; a feature is raised; a config is set, changed and removed."""
    log = Log(epoch=0)
    log.lead(1, [1, 2])
    voters(log, [1, 2])
    # A quorum is founded by one batch with both.
    log.rows[-1] = log.rows[-1]._replace(batch_base_offset=0)
    log.add("KRaftVersionRecord", {"version": 0, "kRaftVersion": 1}, is_control=True)
    log.add("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 25})
    for at, ids in enumerate(([1, 2, 3], [2, 3])):
        log.at_ms += HOUR_MS
        voters(log, ids)
        config(log, str(at))
    log.add("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 27})
    log.at_ms += HOUR_MS
    config(log, None)
    return log


def rows(spark: SparkSession) -> DataFrame:
    return cache_rows(frame(spark, a_log().rows), RECORD_TYPES)


def test_each_voter_has_a_lane_and_each_change_a_row(spark: SparkSession) -> None:
    span = Span(utc(START_MS), utc(START_MS + 3 * HOUR_MS))
    section = members_section(membership.tables(rows(spark), {}), span, LogCommands())
    (plot,) = section.plots
    assert [f"voter {voter}</span>" in plot for voter in (1, 2, 3, 4)] == [True] * 3 + [False]
    # A voter has a mark in each set that it was in.
    assert plot.count("<rect") == 2 + 3 + 2
    (table,) = section.tables
    assert [row[1:3] for row in table.rows] == [
        ("removed", "1"),
        ("added", "3"),
        ("initial", "1"),
        ("initial", "2"),
    ]
    assert table.rows[0][0] == utc(START_MS + 2 * HOUR_MS)


def test_features_and_configs_are_told_newest_first(spark: SparkSession) -> None:
    kept = rows(spark)
    levels = features.tables(kept, {})["features"]
    section = settings_section(levels, configs.config_history(kept), LogCommands())
    of_features, of_configs = section.tables
    assert [row[1:4] for row in of_features.rows] == [
        ("metadata.version", "27", "25"),
        ("metadata.version", "25", None),
        ("kraft.version", "1", None),
    ]
    assert [(row[0], row[2], row[3], row[6]) for row in of_configs.rows] == [
        ("TOPIC t", "1", "0", "removal"),
        ("TOPIC t", "0", None, "change"),
    ]
    assert levels_now(levels) == [("metadata.version", "27"), ("kraft.version", "1")]


def test_a_log_without_such_records_has_empty_tables(spark: SparkSession) -> None:
    log = Log()
    log.add("NoOpRecord", {})
    kept = cache_rows(frame(spark, log.rows), RECORD_TYPES)
    span = Span(utc(START_MS), utc(START_MS))
    levels = features.tables(kept, {})["features"]
    sections = (
        members_section(membership.tables(kept, {}), span, LogCommands()),
        settings_section(levels, configs.config_history(kept), LogCommands()),
    )
    assert not any(table.rows for section in sections for table in section.tables)
    assert levels_now(levels) == []
