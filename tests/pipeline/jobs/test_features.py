from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.jobs.features import FEATURES_SCHEMA, tables
from tests.pipeline.log_frames import START_MS, Log, frame, has_schema, rows_as_dicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipeline.log_frames import Row


def levels(spark: SparkSession, rows: list[Row]) -> list[tuple[object, ...]]:
    table = tables(frame(spark, rows), {})["features"]
    assert has_schema(table, FEATURES_SCHEMA)
    return [tuple(row.values()) for row in rows_as_dicts(table)]


def feature(log: Log, name: str, level: int) -> None:
    log.add("FeatureLevelRecord", {"name": name, "featureLevel": level})


def test_a_row_is_a_level_that_a_feature_did_not_have_before(spark: SparkSession) -> None:
    log = Log()
    log.add("KRaftVersionRecord", {"version": 0, "kRaftVersion": 1}, is_control=True)
    feature(log, "metadata.version", 25)
    log.at_ms += 1000
    feature(log, "metadata.version", 25)
    feature(log, "group.version", 1)
    feature(log, "group.version", 0)
    assert levels(spark, log.rows) == [
        (0, START_MS, 1, "kraft.version", 1, None),
        (1, START_MS, 1, "metadata.version", 25, None),
        (3, START_MS + 1000, 1, "group.version", 1, None),
        (4, START_MS + 1000, 1, "group.version", 0, 1),
    ]


def test_a_snapshot_tells_a_level_without_its_time(spark: SparkSession) -> None:
    log = Log(offset=9)
    log.snapshot([("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 25})])
    feature(log, "metadata.version", 27)
    assert levels(spark, log.rows) == [
        (None, None, 1, "metadata.version", 25, None),
        (9, START_MS, 1, "metadata.version", 27, 25),
    ]


def test_what_a_transaction_took_back_was_no_level(spark: SparkSession) -> None:
    log = Log()
    log.add("BeginTransactionRecord", {})
    feature(log, "metadata.version", 27)
    log.add("AbortTransactionRecord", {})
    assert levels(spark, log.rows) == []
