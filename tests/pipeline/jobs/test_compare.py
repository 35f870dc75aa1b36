from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs.compare import SCHEMAS, tables
from tests.pipeline.log_frames import (
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


def check(spark: SparkSession, logs: dict[int, list[Row]]) -> dict[str, list[dict[str, Any]]]:
    """All tables against dictionaries of what each node holds at each offset."""
    rows = [row for each in logs.values() for row in each]
    got = {name: rows_as_dicts(table) for name, table in tables(frame(spark, rows), {}).items()}
    held = {
        node: {
            row.offset: (row.leader_epoch, row.is_control, row.timestamp, row.key, row.value)
            for row in each
            if not row.from_snapshot and row.record_type
        }
        for node, each in logs.items()
    }
    longest = max(max(offsets) for offsets in held.values()) + 1
    for row in got["logs"]:
        offsets = held[row["node_id"]]
        start, end = min(offsets), max(offsets) + 1
        assert (row["start_offset"], row["end_offset"]) == (start, end)
        assert (row["lag"], row["missing_count"]) == (longest - end, end - start - len(offsets))
        assert row["last_epoch"] == max(epoch for epoch, *_ in offsets.values())
    pairs = {}
    for one, other in combinations(sorted(logs), 2):
        common = sorted(held[one].keys() & held[other].keys())
        differing = [offset for offset in common if held[one][offset] != held[other][offset]]
        if common:
            first = differing[0] if differing else None
            pairs[one, other] = (first, len(common), len(differing))
    assert {
        (row["node_id"], row["other_id"]): (
            row["first_offset"],
            row["common_count"],
            row["differing_count"],
        )
        for row in got["divergence"]
    } == pairs
    spans: dict[tuple[int, int], list[int]] = {}
    for node, offsets in held.items():
        for offset, (epoch, *_) in offsets.items():
            spans.setdefault((epoch, node), []).append(offset)
    assert {
        (row["epoch"], row["node_id"]): (row["start_offset"], row["end_offset"])
        for row in got["epochs"]
    } == {key: (min(found), max(found) + 1) for key, found in spans.items()}
    return got


def random_logs(seed: int) -> dict[int, list[Row]]:
    """Voters whose logs share a beginning and end in tails of their own, or lack some rows."""
    draw = random.Random(seed)
    shared = Log(epoch=0)
    for _ in range(draw.randint(1, 4)):
        shared.lead(draw.randint(1, 3), [1, 2, 3])
        for _ in range(draw.randint(0, 9)):
            shared.at_ms += 1
            shared.add("NoOpRecord", {})
    logs = {}
    for node in range(1, draw.randint(3, 5)):
        kept = draw.randint(1, len(shared.rows))
        log = Log(rows=shared.rows[:kept], offset=kept, epoch=shared.rows[kept - 1].leader_epoch)
        log.at_ms = shared.at_ms + node
        if draw.random() < 0.5:
            log.lead(node, [1, 2, 3], epoch=log.epoch + node)
            for _ in range(draw.randint(0, 3)):
                log.add("NoOpRecord", {})
        rows = [row._replace(source_node=node) for row in log.rows]
        if len(rows) > 2 and draw.random() < 0.3:
            del rows[draw.randint(1, len(rows) - 2)]
        logs[node] = rows[draw.choice([0, 0, len(rows) // 2]) :]
    return logs


def test_random_logs_equal_a_comparison_in_python(spark: SparkSession) -> None:
    seed = clock_seed()
    for history in range(seed, seed + 4):
        check(spark, random_logs(history))


def test_the_stock_quorum_has_one_log_that_diverged(
    spark: SparkSession, kafka_fixtures: Path
) -> None:
    logs = {
        node: read_directory(kafka_fixtures / f"dynamic/node-{node}/__cluster_metadata-0", node)
        for node in (1, 2, 3, 4)
    }
    got = check(spark, logs)
    first = {(row["node_id"], row["other_id"]): row["first_offset"] for row in got["divergence"]}
    # Node 4 led epoch 4 alone; up to there all of them agree.
    assert all(offset is None for pair, offset in first.items() if 4 not in pair)
    assert {row["node_id"] for row in got["epochs"] if row["epoch"] == 4} == {4}


def test_damage_is_told_with_file_and_byte(spark: SparkSession) -> None:
    log = Log(source_node=1)
    log.lead(1, [1])
    damage = log.rows[0]._replace(
        crc_valid=False,
        record_type=None,
        payload='{"error": "CRC", "file": "x.log", "position": 61, "bytes": 9}',
    )
    nobody = damage._replace(source_node=2)
    rows = rows_as_dicts(tables(frame(spark, [*log.rows, damage, nobody]), {})["logs"])
    assert [(row["node_id"], row["damage_count"], row["first_damage"]) for row in rows] == [
        (1, 1, "x.log: byte 61: CRC"),
        (2, 1, "x.log: byte 61: CRC"),
    ]
    assert rows[1]["end_offset"] is None


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas(spark: SparkSession, name: str) -> None:
    assert has_schema(tables(frame(spark, []), {})[name], SCHEMAS[name])
