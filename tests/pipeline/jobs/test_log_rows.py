from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.jobs.log_rows import rows_of, span_of, valid
from tests.pipeline.log_frames import START_MS, Log, frame, rows_as_dicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def begun_at_a_snapshot() -> Log:
    """A log that continues from a snapshot taken a minute after its last record."""
    log = Log(offset=50)
    log.snapshot([("TopicRecord", {"name": "a"})], taken_ms=60_000)
    log.at_ms += 1000
    log.add("TopicRecord", {"name": "b"})
    return log


def test_a_snapshot_counts_as_of_what_it_covers(spark: SparkSession) -> None:
    log = frame(spark, begun_at_a_snapshot().rows)
    assert rows_as_dicts(span_of(log)) == [
        {"first_timestamp": START_MS, "last_timestamp": START_MS + 1000}
    ]
    rows = sorted(rows_as_dicts(rows_of(log, ["TopicRecord"])), key=lambda row: row["offset"])
    assert [(row["timestamp"], row["from_snapshot"]) for row in rows] == [
        (START_MS, True),
        (START_MS + 1000, False),
    ]


def test_damage_is_no_record(spark: SparkSession) -> None:
    rows = begun_at_a_snapshot().rows
    broken = rows[-1]._replace(crc_valid=False, record_type=None)
    assert valid(frame(spark, [*rows, broken])).count() == len(rows)


def test_what_a_quorum_was_founded_with_is_in_its_log(spark: SparkSession) -> None:
    founded = Log(offset=0, at_ms=0)
    founded.snapshot([("VotersRecord", {"voters": []})])
    log = Log()
    log.lead(1, [1])
    got = frame(spark, [*founded.rows, *log.rows])
    assert valid(got).count() == 1
    assert rows_as_dicts(span_of(got))[0]["first_timestamp"] == START_MS


def test_a_frame_without_rows_has_no_span(spark: SparkSession) -> None:
    assert rows_as_dicts(span_of(frame(spark, []))) == [
        {"first_timestamp": None, "last_timestamp": None}
    ]
