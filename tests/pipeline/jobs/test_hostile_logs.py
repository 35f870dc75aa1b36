"""Every job over logs in which all goes wrong, against a walk and against numbers by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs.image_tables import tables as image_tables
from tests.pipeline.jobs.rows import moment, rows_of
from tests.pipeline.log_frames import START_MS, Log, frame
from tests.pipeline.source.logs import LogWriter
from tests.pipeline.walks.hostile import FLAPS, SECOND_MS, Hostile, voters
from tests.pipeline.walks.image import image_at
from tests.pipeline.walks.tables import OF_ONE, OF_SEVERAL, RECORD_TYPES, found, walked

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.pipeline.log_frames import Row

ALL = (*OF_ONE, *OF_SEVERAL)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return Hostile().rows


@pytest.fixture(scope="module")
def log(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return frame(spark, rows).persist()


def same(job: str, log: DataFrame, rows: list[Row], start: int) -> None:
    expected, got = walked(job, rows, start), found(job, log, start)
    for name, told in expected.items():
        assert got[name] == told, f"{job} {name}"


@pytest.mark.parametrize("job", ALL)
def test_a_hostile_log(log: DataFrame, rows: list[Row], job: str) -> None:
    same(job, log, rows, 230)


def at(seconds: int) -> int:
    """So many seconds into the history."""
    return START_MS + seconds * SECOND_MS


def test_the_walk_finds_of_a_hostile_log_what_was_put_in(rows: list[Row]) -> None:
    members = walked("membership", rows, 0)["changes"]
    assert [(row[3], row[4], row[5]) for row in members if row[0]] == [
        ("added", 4, "d"),
        ("removed", 2, "b"),
        ("moved", 3, "c"),
        ("added", 1, "d"),
        ("added", 4, "a"),
        ("removed", 1, "a"),
        ("removed", 4, "d"),
    ]
    brokers = walked("brokers", rows, 0)
    # A fence each three seconds; the broker that restarts twice is fenced by each restart.
    assert brokers["flapping"] == [
        (2, at(384), at(386), 3, 3),
        (3, at(35), at(35 + 3 * (FLAPS - 1)), FLAPS, 21),
    ]
    causes = [row[2] for row in brokers["fencing"] if row[0] == 2]
    assert sorted(map(str, causes)) == [
        "controlled shutdown",
        "registered again",
        "session ended",
    ]
    partitions = walked("partitions", rows, 0)
    assert [row for row in partitions["churn"] if row[1] == "T1"] == [
        ("t", "T1", True, 2, 3, 1, 4, 4, 2)
    ]
    assert [(row[1], row[2], row[8], *row[9:]) for row in partitions["offline"]] == [
        ("T1", 0, 2 * SECOND_MS, 1, 3),
        ("T1", 1, 433 * SECOND_MS, None, None),
    ]


def made_up(spark: SparkSession, path: Path) -> DataFrame:
    """A directory as the jobs read it."""
    reader = spark.read.format("kraft").option("path", str(path))
    return reader.option("recordTypes", RECORD_TYPES).load()


def test_a_log_without_records(spark: SparkSession, tmp_path: Path) -> None:
    LogWriter(tmp_path).file.touch()
    assert not made_up(spark, tmp_path).collect()
    nothing = frame(spark, [])
    for job in ALL:
        same(job, nothing, [], 0)


def test_a_log_of_a_snapshot_alone(spark: SparkSession, rows: list[Row]) -> None:
    alone = [row for row in rows if row.from_snapshot]
    log = frame(spark, alone)
    for job in ALL:
        same(job, log, alone, 99)


def test_a_snapshot_can_be_asked_for_from_the_time_that_it_covers(
    spark: SparkSession, rows: list[Row]
) -> None:
    """It was written 40 seconds after the last record in it, and the log continued in that time."""
    log = frame(spark, rows)
    told = image_tables(log, {"at": moment(at(5))})
    expected = image_at(rows, 99).tables()
    for name in ("topics", "configs", "acls"):
        assert rows_of(told[name]) == expected[name]


def test_logs_whose_tails_were_cut(spark: SparkSession) -> None:
    """Three voters; one led an epoch for itself, one was truncated and rejoined the others."""
    shared = Log(epoch=0)
    shared.lead(1, [1, 2, 3])
    shared.add("VotersRecord", voters(v1=("a", 1), v2=("b", 1), v3=("c", 1)), is_control=True)
    logs = []
    for node, leader, epoch, count in ((1, 1, 2, 4), (2, 2, 3, 9), (3, 2, 3, 7)):
        log = Log(list(shared.rows), shared.at_ms + 1000 * epoch, 1, len(shared.rows))
        log.lead(leader, [1, 2, 3], epoch=epoch)
        for _ in range(count):
            log.add("NoOpRecord", {})
        logs += [row._replace(source_node=node) for row in log.rows]
    log = frame(spark, logs)
    for job in OF_SEVERAL:
        same(job, log, logs, 0)
    assert walked("compare", logs, 0)["divergence"] == [
        (1, 2, 2, 2, 3, 7, 5, False),
        (1, 3, 2, 2, 3, 7, 5, False),
        (2, 3, None, None, None, 10, 0, False),
    ]


def test_records_whose_times_go_back(spark: SparkSession) -> None:
    """The log ends with its latest time, no matter which record has it."""
    log = Log()
    log.lead(1, [1])
    for step_ms in (5000, -3000, -1000):
        log.at_ms += step_ms
        data = {"resourceType": 4, "resourceName": "", "name": "k", "value": str(step_ms)}
        log.add("ConfigRecord", data)
    for job in ("elections", "configs", "sizes"):
        same(job, frame(spark, log.rows), log.rows, 0)
    assert [row[9:] for row in walked("configs", log.rows, 0)["configs"]] == [
        (True, 4000, None),
        (False, -1000, "change"),
        (False, -3000, "change"),
    ]
