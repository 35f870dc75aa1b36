from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs.elections import SCHEMAS, elections, tables
from tests.pipeline.log_frames import (
    STOCK,
    Log,
    clock_seed,
    frame,
    has_schema,
    read_directory,
    rows_as_dicts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipeline.log_frames import Row


def expected(rows: list[Row]) -> list[dict[str, Any]]:
    """The same table by going through the log once, row by row."""
    covered = [
        r.data["lastContainedLogTimestamp"] for r in rows if r.record_type == "SnapshotHeaderRecord"
    ]
    times = [covered[0] if row.from_snapshot else row.at_ms for row in rows]
    found: list[dict[str, Any]] = []
    last = (-1, 0)
    for row, at_ms in zip(rows, times, strict=True):
        if not found or found[-1]["epoch"] != row.leader_epoch:
            if found:
                found[-1] |= {"end_offset": last[0] + 1, "end": last[1], "open": False}
            found.append(
                dict.fromkeys(SCHEMAS["elections"].names)
                | {"epoch": row.leader_epoch, "open": True, "record_count": 0}
            )
        if row.record_type == "LeaderChangeMessage":
            found[-1] |= {
                "leader_id": row.data["leaderId"],
                "start_offset": row.offset,
                "start": at_ms,
                "voters": sorted(voter["voterId"] for voter in row.data["voters"]),
                "granting_voters": sorted(voter["voterId"] for voter in row.data["grantingVoters"]),
            }
            if len(found) > 1:
                found[-1]["leaderless_ms"] = at_ms - found[-2]["end"]
        found[-1]["record_count"] += not row.from_snapshot
        last = (row.offset, at_ms)
    for row_of in found:
        end = max(times) if row_of["open"] else row_of["end"]
        row_of["duration_ms"] = end - (min(times) if row_of["start"] is None else row_of["start"])
    return found


def random_history(seed: int) -> list[Row]:
    """Epochs of any length, some of them without a winner; some logs begin at a snapshot."""
    draw = random.Random(seed)
    log = Log(offset=draw.choice([0, 77]), epoch=draw.randint(1, 5))
    if log.offset:
        log.snapshot([("FeatureLevelRecord", {"name": "x", "featureLevel": 1})], taken_ms=50)
    for _ in range(draw.randint(1, 8)):
        if log.rows or draw.random() < 0.9:
            voters = draw.sample(range(1, 6), 3)
            log.lead(voters[0], voters, epoch=log.epoch + draw.choice([1, 1, 3]))
        for _ in range(draw.randint(0, 5)):
            log.at_ms += draw.randint(0, 5000)
            log.add("NoOpRecord", {})
        log.at_ms += draw.randint(0, 20_000)
    return log.rows


def test_an_epoch_lasts_from_its_leader_change_to_its_last_record(spark: SparkSession) -> None:
    log = Log(epoch=0)
    log.lead(1, [1, 2, 3])
    log.at_ms += 1000
    log.add("NoOpRecord", {})
    log.at_ms += 300
    log.lead(2, [1, 2, 3], epoch=4)
    log.at_ms += 50
    log.add("NoOpRecord", {})
    first, second = rows_as_dicts(elections(frame(spark, log.rows)).orderBy("epoch"))
    assert (first["duration_ms"], first["open"], first["end_offset"]) == (1000, False, 2)
    assert (second["epoch"], second["leader_id"], second["leaderless_ms"]) == (4, 2, 300)
    assert (second["end"], second["open"], second["duration_ms"]) == (None, True, 50)


def test_random_histories_equal_a_walk_through_the_log(spark: SparkSession) -> None:
    seed = clock_seed()
    for history in range(seed, seed + 5):
        rows = random_history(history)
        got = rows_as_dicts(elections(frame(spark, rows)).orderBy("epoch"))
        assert got == expected(rows), f"history {history}"


@pytest.mark.parametrize("directory", STOCK)
def test_stock_logs_equal_a_walk_through_them(
    spark: SparkSession, kafka_fixtures: Path, directory: str
) -> None:
    rows = read_directory(kafka_fixtures / directory)
    got = rows_as_dicts(tables(frame(spark, rows), {})["elections"])
    assert got == expected(rows)
    assert got[-1]["open"]


def test_damage_is_passed_over(spark: SparkSession) -> None:
    log = Log()
    log.lead(1, [1])
    log.rows.append(
        log.rows[0]._replace(crc_valid=False, record_type=None, offset=1, leader_epoch=9)
    )
    assert [row["epoch"] for row in rows_as_dicts(elections(frame(spark, log.rows)))] == [2]


def test_a_log_without_records_has_no_epochs(spark: SparkSession) -> None:
    assert elections(frame(spark, [])).collect() == []


def test_the_schema(spark: SparkSession) -> None:
    assert has_schema(elections(frame(spark, [])), SCHEMAS["elections"])
