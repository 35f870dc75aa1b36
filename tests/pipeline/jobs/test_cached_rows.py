"""Cached rows of a log, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.jobs import brokers
from quorate.pipeline.jobs.cached_rows import at_hand, cache_rows, cache_typed_rows
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    NoOpRecord,
    TopicRecord,
)
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of
from tests.pipeline.jobs.rows import rows_of
from tests.pipeline.log_frames import START_MS as LOG_START_MS
from tests.pipeline.log_frames import Log, frame, rows_as_dicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_of_the_types_and_the_last_timestamp_of_all(spark: SparkSession) -> None:
    config = ConfigRecord(resource_type=4, resource_name="1", name="a", value="b")
    entries = [Entry(0, START_MS, config), Entry(1, START_MS + 7, NoOpRecord())]
    found = cache_typed_rows(frame_of(spark, entries), ConfigRecord, TopicRecord)
    assert found.columns == [
        "offset",
        "timestamp",
        "is_control",
        "record_type",
        "config_record",
        "topic_record",
    ]
    rows = rows_of(found.select("offset", "timestamp", "record_type", "config_record.name"))
    assert rows == [(0, START_MS, "ConfigRecord", "a"), (None, START_MS + 7, None, None)]


def test_a_log_ends_where_an_aborted_transaction_wrote_last(spark: SparkSession) -> None:
    config = ConfigRecord(resource_type=4, resource_name="1", name="a", value="b")
    entries = [
        Entry(0, START_MS, config),
        Entry(1, START_MS + 5, BeginTransactionRecord(name="change")),
        Entry(2, START_MS + 6, config),
        Entry(3, START_MS + 9, AbortTransactionRecord(reason="no")),
    ]
    rows = rows_of(
        cache_typed_rows(frame_of(spark, entries), ConfigRecord).select(
            "offset", "timestamp", "record_type"
        )
    )
    assert rows == [(0, START_MS, "ConfigRecord"), (None, START_MS + 9, None)]


def test_a_job_finds_the_same_in_rows_that_were_kept(spark: SparkSession) -> None:
    log = Log(offset=500)
    registration = {"brokerId": 1, "brokerEpoch": 9, "fenced": True, "endPoints": []}
    log.snapshot([("RegisterBrokerRecord", registration)], taken_ms=90_000)
    for record_type, data in (
        ("NoOpRecord", {}),
        ("UnfenceBrokerRecord", {"id": 1, "epoch": 9}),
        ("FenceBrokerRecord", {"id": 1, "epoch": 9}),
        ("NoOpRecord", {}),
    ):
        log.at_ms += 5000
        log.add(record_type, data)
    whole = frame(spark, log.rows)
    values = {"flap_window_s": 60, "flap_count": 2}
    expected = brokers.tables(whole, values)
    for name, table in brokers.tables(cache_rows(whole, brokers.RECORD_TYPES), values).items():
        assert rows_as_dicts(table) == rows_as_dicts(expected[name])
    assert [row["duration_ms"] for row in rows_as_dicts(expected["fencing"])] == [10_000, 5_000]


def test_an_aborted_transaction_leaves_nothing_and_another_one_its_records(
    spark: SparkSession,
) -> None:
    config = ConfigRecord(resource_type=4, resource_name="1", name="a", value="b")
    entries = [
        Entry(0, START_MS, BeginTransactionRecord(name="change")),
        Entry(1, START_MS, config),
        Entry(2, START_MS, EndTransactionRecord()),
        Entry(3, START_MS, BeginTransactionRecord(name="change")),
        Entry(4, START_MS, config),
        Entry(5, START_MS, AbortTransactionRecord(reason="no")),
    ]
    found = cache_typed_rows(frame_of(spark, entries), ConfigRecord)
    assert [row.offset for row in found.where("offset is not null").collect()] == [1]


def test_rows_of_a_snapshot_have_the_time_of_the_last_record_that_it_covers(
    spark: SparkSession,
) -> None:
    log = Log(offset=50)
    log.snapshot([("TopicRecord", {"name": "a", "topicId": "x"})], taken_ms=60_000)
    rows = cache_typed_rows(frame(spark, log.rows), TopicRecord).select("offset", "timestamp")
    assert [row["timestamp"] for row in rows_as_dicts(rows)] == [LOG_START_MS] * 2
    log.at_ms += 1000
    log.add("NoOpRecord", {})
    later = cache_typed_rows(frame(spark, log.rows), TopicRecord).select("offset", "timestamp")
    assert {row["offset"]: row["timestamp"] for row in rows_as_dicts(later)} == {
        49: LOG_START_MS,
        None: LOG_START_MS + 1000,
    }


def test_of_no_rows_nothing_is_kept(spark: SparkSession) -> None:
    found = cache_typed_rows(frame_of(spark, []), ConfigRecord).select("offset", "timestamp")
    assert rows_of(found) == [(None, None)]


def test_a_small_log_at_hand_is_asked_without_moving_rows(spark: SparkSession) -> None:
    log = Log()
    for epoch in range(3):
        log.lead(epoch, [1])
        log.add("NoOpRecord", {})
    whole = frame(spark, log.rows).repartition(3)
    held = at_hand(whole)
    assert sorted(held.collect()) == sorted(whole.collect())
    asked = held.groupBy("leader_epoch").count().orderBy("leader_epoch")
    plan = asked._jdf.queryExecution().executedPlan().toString()
    assert "InMemoryTableScan" in plan
    assert "Exchange" not in plan.partition("InMemoryRelation")[0]
    assert [row["count"] for row in asked.collect()] == [2, 2, 2]
