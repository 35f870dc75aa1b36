from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs.membership import SCHEMAS, tables, voter_changes, voter_sets
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

Voter = tuple[int, str | None, tuple[tuple[str, str, int], ...] | None]


def voters_of(row: Row) -> list[Voter]:
    """The set that a VotersRecord or, without directories, a LeaderChange names."""
    if row.record_type == "LeaderChangeMessage":
        return sorted((voter["voterId"], None, None) for voter in row.data["voters"])
    return sorted(
        (
            voter["voterId"],
            voter["voterDirectoryId"],
            tuple((end["name"], end["host"], end["port"]) for end in voter["endpoints"]),
        )
        for voter in row.data["voters"]
    )


def walk(rows: list[Row]) -> list[tuple[Row, list[Voter] | None, list[Voter]]]:
    """Each row that changes the set, the set before it and after it."""
    has_sets = False
    found: list[tuple[Row, list[Voter] | None, list[Voter]]] = []
    first = next((row for row in rows if row.record_type == "VotersRecord"), None)
    for row in rows:
        if row.record_type == "VotersRecord":
            has_sets = True
        elif (
            row.record_type != "LeaderChangeMessage"
            or has_sets
            or (first is not None and row.batch_base_offset == first.batch_base_offset)
        ):
            continue
        before = found[-1][2] if found else None
        if voters_of(row) != before:
            found.append((row, before, voters_of(row)))
    return found


def changes_between(before: list[Voter] | None, after: list[Voter]) -> list[tuple[str, Voter]]:
    """The change of each voter."""
    if before is None:
        return [("initial", voter) for voter in after]
    told: list[tuple[str, Voter]] = []
    for voter in after:
        same = [old for old in before if old[0] == voter[0] and old[1] in (None, voter[1])]
        if not same:
            told.append(("added", voter))
        elif same[0][1] != voter[1]:
            told.append(("identified", voter))
        elif same[0][2] != voter[2]:
            told.append(("moved", voter))
    told += [
        ("removed", old)
        for old in before
        if not any(old[0] == voter[0] and old[1] in (None, voter[1]) for voter in after)
    ]
    return sorted(told, key=lambda item: (item[0], item[1][0]))


def check(spark: SparkSession, rows: list[Row]) -> None:
    """Both tables against the walk."""
    found = walk(rows)
    got = tables(frame(spark, rows), {})
    changes = [
        (None if row.from_snapshot else row.offset, change, voter[0], voter[1], len(after))
        for row, before, after in found
        for change, voter in changes_between(before, after)
    ]
    table = rows_as_dicts(got["changes"])
    assert [
        (r["offset"], r["change"], r["voter_id"], r["directory_id"], r["voter_count"])
        for r in table
    ] == changes
    moved = [row for row in table if row["change"] == "moved"]
    assert all(row["previous_endpoints"] not in (None, row["endpoints"]) for row in moved)
    covered = [
        r.data["lastContainedLogTimestamp"] for r in rows if "Header" in (r.record_type or "")
    ]
    times = [covered[0] if row.from_snapshot else row.at_ms for row in rows]
    starts = [covered[0] if row.from_snapshot else row.at_ms for row, _, _ in found]
    ends = [*starts[1:], max(times, default=0)]
    sets = rows_as_dicts(got["voter_sets"])
    assert [(row["duration_ms"], row["voter_count"]) for row in sets] == [
        ((end - (min(times) if r.from_snapshot else start)), len(after))
        for (r, _, after), start, end in zip(found, starts, ends, strict=True)
    ]
    assert [row["open"] for row in sets] == [*([False] * (len(sets) - 1)), *([True] * bool(sets))]


def voters_record(voters: dict[int, tuple[str, int]]) -> dict[str, Any]:
    """A set: id to directory and port."""
    return {
        "version": 0,
        "voters": [
            {
                "voterId": voter,
                "voterDirectoryId": directory,
                "endpoints": [{"name": "CONTROLLER", "host": "h", "port": port}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
            for voter, (directory, port) in voters.items()
        ],
    }


def random_history(seed: int) -> list[Row]:
    """A quorum that is static at first or never, and changes by one voter at a time."""
    draw = random.Random(seed)
    log = Log(epoch=draw.randint(1, 3), offset=draw.choice([0, 0, 40]))
    voters = {node: (f"d{node}", 9000) for node in range(1, draw.randint(2, 5))}
    if log.offset:
        log.snapshot([("VotersRecord", voters_record(voters))], taken_ms=9)
    elif draw.random() < 0.7:
        for _ in range(draw.randint(1, 3)):
            log.lead(1, list(voters))
            log.at_ms += draw.randint(1, 999)
    for step in range(draw.randint(1, 9)):
        log.at_ms += draw.randint(1, 99_999)
        log.add("VotersRecord", voters_record(voters), is_control=True)
        node = draw.randint(1, 6)
        match draw.choice(["put", "move", "disk", "go", "elect"]):
            case "put":
                voters.setdefault(node, (f"d{node}", 9000))
            case "move" if node in voters:
                voters[node] = (voters[node][0], 9001 + step)
            case "disk" if node in voters:
                voters[node] = (f"new{step}", 9000)
            case "go" if len(voters) > 1:
                voters.pop(node, None)
            case _:
                log.lead(1, list(voters))
    return log.rows


def test_random_histories_equal_a_walk_through_the_log(spark: SparkSession) -> None:
    seed = clock_seed()
    for history in range(seed, seed + 4):
        check(spark, random_history(history))


@pytest.mark.parametrize("directory", STOCK)
def test_stock_logs_equal_a_walk_through_them(
    spark: SparkSession, kafka_fixtures: Path, directory: str
) -> None:
    check(spark, read_directory(kafka_fixtures / directory))


def test_a_disk_that_is_replaced_is_a_voter_gone_and_one_come(spark: SparkSession) -> None:
    log = Log()
    log.add("VotersRecord", voters_record({1: ("a", 1), 2: ("b", 1)}), is_control=True)
    log.at_ms += 10
    log.add("VotersRecord", voters_record({1: ("c", 1), 2: ("b", 2)}), is_control=True)
    rows = rows_as_dicts(voter_changes(frame(spark, log.rows)).where("offset = 1"))
    told = sorted((row["change"], row["voter_id"], row["directory_id"]) for row in rows)
    assert told == [("added", 1, "c"), ("moved", 2, "b"), ("removed", 1, "a")]


def test_the_schemas(spark: SparkSession) -> None:
    log = frame(spark, [])
    assert has_schema(voter_changes(log), SCHEMAS["changes"])
    assert has_schema(voter_sets(log), SCHEMAS["voter_sets"])
