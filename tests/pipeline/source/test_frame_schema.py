"""The frame's schema as Spark has it."""

from __future__ import annotations

from quorate.pipeline.source.frame_schema import COLUMNS, column_name, spark_schema


def test_the_columns_are_those_that_jobs_rely_on() -> None:
    assert list(COLUMNS) == [
        "offset",
        "leader_epoch",
        "timestamp",
        "is_control",
        "record_type",
        "record_version",
        "key",
        "value",
        "payload",
        "batch_base_offset",
        "segment",
        "crc_valid",
        "source_node",
    ]


def test_a_column_is_named_after_its_record_type() -> None:
    assert column_name("BrokerRegistrationChangeRecord") == "broker_registration_change_record"


def test_each_record_type_adds_a_struct() -> None:
    ddl = spark_schema(("offset", "timestamp"), ("TopicRecord", "FenceBrokerRecord"))
    assert ddl == (
        "offset bigint, timestamp timestamp_ltz, "
        "topic_record struct<`name`: string, `topicId`: string>, "
        "fence_broker_record struct<`id`: int, `epoch`: bigint>"
    )
