from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from quorate.pipeline.jobs.health import SCHEMAS, THRESHOLDS, health, tables
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

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def judged(spark: SparkSession, rows: list[Row]) -> dict[str, tuple[str | None, float | None]]:
    """Verdict and number by metric."""
    table = rows_as_dicts(health(frame(spark, rows)))
    return {row["metric"]: (row["verdict"], row["value"]) for row in table}


def verdict(value: float | None, bound: float) -> str:
    """As the documentation has it for what grows worse by degrees."""
    if value is None:
        return "unknown"
    return "ok" if value <= bound else "warn" if value <= 10 * bound else "critical"


def expected(rows: list[Row]) -> dict[str, tuple[str | None, float | None]]:
    """The same from lists."""
    records = [row for row in rows if row.record_type is not None]
    of_log = [row for row in records if not row.from_snapshot]
    changes = [row for row in of_log if row.record_type == "LeaderChangeMessage"]
    leaders: dict[int, set[int]] = {}
    begun: dict[int, Row] = {}
    for row in changes:
        leaders.setdefault(row.leader_epoch, set()).add(row.data["leaderId"])
        begun.setdefault(row.leader_epoch, row)
    times = [row.at_ms for row in begun.values() if row.offset > 0]
    recent = [at for at in times if at > max(row.at_ms for row in of_log) - DAY_MS]
    rate = max((sum(at - HOUR_MS <= other <= at for other in times) for at in recent), default=0)
    ends: dict[int | None, int] = {}
    for row in of_log:
        ends[row.source_node] = max(ends.get(row.source_node, 0), row.offset + 1)
    lag = max(ends.values()) - min(ends.values()) if len(ends) > 1 else None
    stamps: dict[str, list[int]] = {}
    for row in records:
        if row.record_type in ("SnapshotHeaderRecord", "SnapshotFooterRecord"):
            stamps.setdefault(row.segment, []).append(row.at_ms)
    took = max((max(pair) - min(pair) for pair in stamps.values()), default=0) or None
    errors = len(rows) - len(records)
    nodes = {row.source_node for row in of_log}
    back = max(
        (furthest_back([row for row in of_log if row.source_node == node]) for node in nodes),
        default=0,
    )
    most = max(map(len, leaders.values()), default=None)
    return {
        "ActiveControllerCount": (
            "unknown" if most is None else "ok" if most == 1 else "critical",
            most,
        ),
        "LeaderElectionRate": (verdict(rate, 1), rate),
        "MetadataLogEndOffset": (None, max(ends.values())),
        "MetadataLogLag": (verdict(lag, 1000), lag),
        "SnapshotGenerationTimeMs": (verdict(took, 10_000), took),
        "MetadataErrorCount": ("critical" if errors else "ok", errors),
        "TimestampRegressionMs": (
            "unknown" if not of_log else "ok" if back <= 1000 else "warn",
            back if of_log else None,
        ),
        # No two of them differ at an offset that both have, but by epochs.
        "LogMatchingViolationCount": ("ok", 0) if len(ends) > 1 else ("unknown", None),
    }


def furthest_back(of_node: list[Row]) -> int:
    """The most by which a record of the last day is earlier than one before it."""
    times = [row.at_ms for row in sorted(of_node, key=lambda row: row.offset)]
    pairs = zip(accumulate(times, max), times, strict=True)
    return max(high - at for high, at in pairs if at > times[-1] - DAY_MS)


def random_history(seed: int) -> list[Row]:
    """Elections at all distances, perhaps two leaders, damage, a second log, a slow snapshot."""
    draw = random.Random(seed)
    log = Log(epoch=0, offset=draw.choice([0, 9]), source_node=1)
    if log.offset:
        log.epoch = 1
        log.snapshot([("FeatureLevelRecord", {"name": "x", "featureLevel": 1})])
        late = draw.choice([0, 900, 10_001, 200_000])
        log.rows[-1] = log.rows[-1]._replace(timestamp=_later(log.rows[-1], late))
    for _ in range(draw.randint(1, 14)):
        log.lead(draw.randint(1, 3), [1, 2, 3])
        log.at_ms += draw.choice([1000, 200_000, HOUR_MS, 9 * HOUR_MS])
        if draw.random() < 0.1:
            log.lead(draw.randint(1, 3), [1, 2, 3], epoch=log.epoch)
    log.add("NoOpRecord", {})
    rows = list(log.rows)
    if draw.random() < 0.5:
        rows += [row._replace(source_node=2) for row in log.rows[: len(log.rows) // 2 + 3]]
        far = rows[-1]._replace(offset=rows[-1].offset + draw.choice([0, 1500, 20_000]))
        rows.append(far._replace(record_type="NoOpRecord", payload="{}", segment="x"))
    if draw.random() < 0.3:
        rows.append(rows[-1]._replace(crc_valid=False, record_type=None, payload="{}"))
    return rows


def _later(row: Row, by_ms: int) -> Any:  # noqa: ANN401 - a datetime
    from datetime import timedelta

    return row.timestamp + timedelta(milliseconds=by_ms)


def test_random_histories_equal_a_judgement_in_python(spark: SparkSession) -> None:
    seed = clock_seed()
    for history in range(seed, seed + 4):
        rows = random_history(history)
        assert judged(spark, rows) == expected(rows), f"history {history}"


def test_the_stock_quorum(spark: SparkSession, kafka_fixtures: Path) -> None:
    rows = [
        row
        for node in (1, 2, 3, 4)
        for row in read_directory(
            kafka_fixtures / f"dynamic/node-{node}/__cluster_metadata-0", node
        )
    ]
    got = judged(spark, rows)
    assert got == expected(rows)
    # Three elections within minutes; the rest of it was well.
    assert {name for name, (word, _) in got.items() if word not in ("ok", None)} == {
        "LeaderElectionRate"
    }


def test_every_metric_has_a_row_even_of_no_log(spark: SparkSession) -> None:
    table = health(frame(spark, []))
    assert has_schema(table, SCHEMAS["health"])
    rows = rows_as_dicts(table)
    assert sorted(row["metric"] for row in rows) == sorted(THRESHOLDS)
    assert {row["verdict"] for row in rows if row["value"] is None} == {"unknown"}
    assert all(row["what"] for row in rows)


def test_the_job_has_one_table(spark: SparkSession) -> None:
    assert list(tables(frame(spark, []), {})) == ["health"]


def told(spark: SparkSession, rows: list[Row], metric: str) -> tuple[str | None, str]:
    """The verdict and the words of one metric."""
    (row,) = (row for row in rows_as_dicts(health(frame(spark, rows))) if row["metric"] == metric)
    return row["verdict"], row["what"]


def test_a_storm_of_elections_is_no_verdict_once_a_day_has_passed(spark: SparkSession) -> None:
    log = Log(epoch=0)
    for _ in range(14):
        log.lead(1, [1, 2, 3])
        log.at_ms += 1000
    assert told(spark, log.rows, "LeaderElectionRate") == (
        "critical",
        "elections in the hour before 2026-11-18T11:06:53Z, the most of the last day and of the"
        " whole log",
    )
    log.at_ms += DAY_MS
    log.add("NoOpRecord", {})
    assert told(spark, log.rows, "LeaderElectionRate") == (
        "ok",
        "elections in the last day; in the whole log 13 in the hour before 2026-11-18T11:06:53Z",
    )
    log.lead(2, [1, 2, 3])
    assert told(spark, log.rows, "LeaderElectionRate") == (
        "ok",
        "elections in the hour before 2026-11-19T11:06:54Z, the most of the last day; in the whole"
        " log 13 in the hour before 2026-11-18T11:06:53Z",
    )


def test_the_end_of_a_log_is_not_judged(spark: SparkSession) -> None:
    log = Log()
    log.add("NoOpRecord", {})
    assert judged(spark, log.rows)["MetadataLogEndOffset"] == (None, 1)


def test_a_snapshot_that_cannot_tell_does_not_send_to_itself(spark: SparkSession) -> None:
    log = Log(offset=9)
    log.snapshot([])
    log.add("NoOpRecord", {})
    verdict, what = told(spark, log.rows, "SnapshotGenerationTimeMs")
    assert verdict == "unknown"
    assert what.startswith("Quorate writes one time into a whole snapshot")
    _, what = told(spark, log.rows[-1:], "SnapshotGenerationTimeMs")
    assert what == "no snapshot was read: --starting-offsets snapshot reads the newest"


def test_logs_that_differ_below_an_epoch_that_both_have_are_critical(spark: SparkSession) -> None:
    log = Log(epoch=0, source_node=1)
    for _ in range(3):
        log.lead(1, [1, 2, 3])
        log.add("NoOpRecord", {})
    # Node 2 has another record of the first epoch, node 3 a tail of its own behind the second.
    other = [row._replace(source_node=2) for row in log.rows]
    other[1] = other[1]._replace(value=b"another")
    tail = [row._replace(source_node=3) for row in log.rows[:4]]
    own = log.rows[4]._replace(source_node=3, leader_epoch=9)
    assert told(spark, [*log.rows, *tail, own], "LogMatchingViolationCount") == (
        "ok",
        "no two logs differ below an epoch that both have",
    )
    assert told(spark, [*log.rows, *other, *tail, own], "LogMatchingViolationCount") == (
        "critical",
        "pairs of logs; nodes 1 and 2 differ at offset 1, below an epoch that both have",
    )


def with_clocks(*ahead_ms: int) -> list[Row]:
    """A log whose leaders, one after the other, have clocks that are so far ahead."""
    log = Log(source_node=1)
    rows: list[Row] = []
    for ahead in ahead_ms:
        log.lead(1, [1, 2, 3])
        for _ in range(3):
            log.at_ms += 1000
            log.add("NoOpRecord", {})
        rows += [row._replace(timestamp=_later(row, ahead)) for row in log.rows[len(rows) :]]
    return rows


def test_a_clock_that_was_ahead_is_told_and_no_more_than_a_warning(spark: SparkSession) -> None:
    back = with_clocks(0, 3_600_000, 0)
    offset = 8
    assert told(spark, back, "TimestampRegressionMs") == (
        "warn",
        f"milliseconds from offset {offset - 1} back to offset {offset}, the most of the last day"
        " and of the whole log",
    )
    assert told(spark, with_clocks(0, 500, 0), "TimestampRegressionMs")[0] == "ok"
    assert told(spark, with_clocks(0, 0, 0), "TimestampRegressionMs") == (
        "ok",
        "no record has an earlier time than one in front of it",
    )


def test_a_tail_that_another_log_lacks_is_in_front_of_none_of_its_records(
    spark: SparkSession,
) -> None:
    rows = with_clocks(0, 0)
    ahead = [row._replace(timestamp=_later(row, 900_000)) for row in rows[4:]]
    tail = [row._replace(offset=row.offset + 4, leader_epoch=1, source_node=2) for row in ahead]
    other = [row._replace(source_node=2) for row in rows[:4]]
    found = told(spark, [*rows, *other, *tail], "TimestampRegressionMs")
    assert found == ("ok", "no record has an earlier time than one in front of it")


def test_a_clock_that_was_ahead_in_an_epoch_is_told(spark: SparkSession) -> None:
    rows = with_clocks(0, 0)
    ahead = 3_600_000
    one = [rows[0], rows[1]._replace(timestamp=_later(rows[1], ahead)), *rows[2:4]]
    verdict, what = told(spark, one, "TimestampRegressionMs")
    assert (verdict, what.split(",")[0]) == ("warn", "milliseconds from offset 1 back to offset 3")


def test_a_clock_is_judged_by_the_last_day(spark: SparkSession) -> None:
    rows = with_clocks(0, 3_600_000, 0, DAY_MS * 2, DAY_MS * 2)
    assert told(spark, rows, "TimestampRegressionMs") == (
        "ok",
        "no time of the last day goes back; in the whole log 3600000 from offset 7 back to"
        " offset 8",
    )
