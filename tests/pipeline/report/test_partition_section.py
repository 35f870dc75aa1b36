"""Partitions on the page: why they lack replicas, and what was elected uncleanly when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs import partitions
from quorate.pipeline.report.broker_section import BrokerIds
from quorate.pipeline.report.commands import LogCommands
from quorate.pipeline.report.partition_section import (
    lacking_replicas,
    partition_verdicts,
    partitions_section,
)
from quorate.pipeline.report.plots import Span
from quorate.pipeline.report.top_rows import utc
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quorate.pipeline.report.page import HealthVerdict, Table
    from quorate.records.metadata import MetadataRecord

DAY_MS = 86_400_000
TOPIC = TopicId(bytes(15) + b"\x07")
# 3 is gone, 2 is fenced.
BROKERS = BrokerIds((1, 2, 4), (2,), (3,), is_whole=True)


def created(number: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=TOPIC,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def frame(spark: SparkSession, *records: tuple[int, MetadataRecord]) -> DataFrame:
    """A log of one topic; each record comes so many milliseconds after the begin."""
    topic = (0, TopicRecord(name="t", topic_id=TOPIC))
    entries = [
        Entry(at, START_MS + after_ms, record)
        for at, (after_ms, record) in enumerate((topic, *records))
    ]
    return frame_of(spark, entries)


def lacking_log(spark: SparkSession) -> DataFrame:
    """Partitions that lack a replica for each of the reasons, and two that lack none."""
    moving = PartitionChangeRecord(
        partition_id=3, topic_id=TOPIC, replicas=(1, 4), adding_replicas=(4,)
    )
    return frame(
        spark,
        (0, created(0, (1, 3), (1,))),
        (1, created(1, (1, 2), (1,))),
        (2, created(2, (1, 4), (1,))),
        (3, created(3, (1,), (1,))),
        (4, moving),
        (5, created(4, (1, 4), (1, 4))),
        (6, created(5, (1, 3), (1, 3))),
    )


def shown(
    log: DataFrame, end_ms: int = START_MS + 10
) -> tuple[dict[str, HealthVerdict], dict[str, Table]]:
    """Verdicts and tables of the page by their titles."""
    tables = partitions.tables(log, {})
    lacking = lacking_replicas(tables["history"], BROKERS)
    span = Span(utc(START_MS), utc(end_ms))
    section = partitions_section(tables, lacking, BROKERS, span, LogCommands())
    verdicts = partition_verdicts(tables, lacking, span)
    assert {verdict.section for verdict in verdicts} == {section.title}
    return (
        {verdict.title: verdict for verdict in verdicts},
        {table.title: table for table in section.tables},
    )


def test_a_partition_lacks_a_replica_for_a_reason(spark: SparkSession) -> None:
    lacking = lacking_replicas(partitions.tables(lacking_log(spark), {})["history"], BROKERS)
    rows = lacking.orderBy("partition").select("partition", "missing", "gone", "why").collect()
    assert [tuple(row) for row in rows] == [
        (0, [3], [3], "gone"),
        (1, [2], [], "fenced"),
        (2, [4], [], "behind"),
        (3, [4], [], "moving"),
        (5, [], [3], None),
    ]


def test_the_warning_of_missing_replicas_says_why(spark: SparkSession) -> None:
    verdicts, tables = shown(lacking_log(spark))
    under = verdicts["Under-replicated partitions"]
    assert under.status == "warning"
    assert under.words == (
        "4 at the end of the log: 1 lack replicas on brokers that are not registered (3) and stay"
        " so until moved; 1 wait for brokers that are fenced (2); 1 are being moved (4); 1"
        " have replicas that are behind (4)"
    )
    title = "Replicas on brokers that are not registered"
    assert (verdicts[title].status, verdicts[title].words) == (
        "warning",
        "in 2 partitions at the end of the log: 3",
    )
    assert tables[title].rows == (
        ("t", "0", "1", [1, 3], [1], [3]),
        ("t", "5", "1", [1, 3], [1, 3], [3]),
    )
    assert tables[title].command.startswith("quorate pipeline image --path DIR --table partitions")


def test_nothing_lacks_anything_in_a_log_without_partitions(spark: SparkSession) -> None:
    verdicts, tables = shown(frame(spark))
    assert {verdict.status for verdict in verdicts.values()} == {"ok"}
    assert not any(table.rows for table in tables.values())


@pytest.mark.parametrize(
    ("after_ms", "status", "words"),
    [
        (DAY_MS - 1, "critical", "1 in the last day, 1 in the whole log"),
        (DAY_MS, "ok", "0 in the last day, 1 in the whole log"),
    ],
)
def test_an_unclean_election_is_critical_for_a_day_and_told_for_ever(
    spark: SparkSession, after_ms: int, status: str, words: str
) -> None:
    unclean = PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC, leader=2, isr=(2,), leader_recovery_state=1
    )
    end_ms = START_MS + 1 + after_ms
    log = frame(
        spark,
        (0, created(0, (1, 2), (1,))),
        (1, unclean),
        (1 + after_ms, NoOpRecord()),
    )
    verdicts, tables = shown(log, end_ms)
    verdict = verdicts["Unclean elections"]
    assert verdict.status == status
    at = utc(START_MS + 1)
    assert verdict.words == (
        f"{words}, the last at {at:%Y-%m-%dT%H:%M:%SZ}; each may have lost records"
    )
    table = tables["The newest unclean elections"]
    assert table.rows == (("t", "0", at, 2, "2", [1], [2]),)
    assert table.command == (
        "quorate pipeline partitions --path DIR --table unclean --order-by 'offset desc'"
    )


def test_a_peak_is_told_once_with_the_way_to_its_partitions(spark: SparkSession) -> None:
    def change(number: int, isr: tuple[int, ...]) -> PartitionChangeRecord:
        return PartitionChangeRecord(partition_id=number, topic_id=TOPIC, isr=isr)

    minute = 60_000
    log = frame(
        spark,
        *((0, created(number, (1, 2), (1, 2))) for number in range(3)),
        *((minute, change(number, (1,))) for number in range(3)),
        # One of them comes back and is lost again immediately, which is the same peak.
        (minute + 1, change(0, (1, 2))),
        (minute + 2, change(0, (1,))),
        *((2 * minute, change(number, (1, 2))) for number in range(3)),
        (50 * minute, change(1, (1,))),
        (51 * minute, change(1, (1, 2))),
    )
    _, tables = shown(log, START_MS + 60 * minute)
    table = tables["Under-replicated partitions: the highest points"]
    assert table.rows == (
        (utc(START_MS + minute), 3),
        (utc(START_MS + 50 * minute), 1),
    )
    under = partitions.tables(log, {})["under_replicated"]
    where = table.command.split("--where ")[1].strip("'")
    assert under.where(where).count() == 3
