"""The history of configs equals that of a loop over the same records, and tells no password."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from quorate.pipeline.jobs import configs
from quorate.pipeline.jobs.cached_rows import cache_typed_rows
from quorate.records.ids import TopicId
from quorate.records.metadata import (
    ConfigRecord,
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.pipeline.jobs import plain
from tests.pipeline.jobs.histories import START_MS, Entry, History, frame_of
from tests.pipeline.jobs.rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {2: "TOPIC", 4: "BROKER"}


def shown(setting: plain.Setting, value: str | None) -> str | None:
    is_secret = setting.config == "ssl.key.password"
    return "(withheld)" if is_secret and value is not None else value


def test_every_value_of_every_config(spark: SparkSession) -> None:
    history = History(time.time_ns() % 1_000_000_000, 500)
    frame = frame_of(spark, history.entries, shuffled=random.Random(history.seed))
    found = configs.config_history(cache_typed_rows(frame, *configs.CONFIG_RECORDS))
    last = plain.last_ms(history.entries)
    expected = [
        (
            TYPES[setting.type],
            setting.resource,
            setting.config,
            shown(setting, setting.value),
            shown(setting, setting.previous),
            *plain.interval(setting.start, setting.end, last),
            setting.ended_by,
        )
        for setting in plain.settings(history.entries)
    ]
    assert found.schema.simpleString() == configs.CONFIG_HISTORY_SCHEMA.simpleString()
    assert rows_of(found) == sorted(expected, key=repr), f"seed {history.seed}"


def test_a_topic_takes_its_configs_with_it_and_its_successor_has_none(spark: SparkSession) -> None:
    first, second = TopicId(bytes(15) + b"\1"), TopicId(bytes(15) + b"\2")
    set_it = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")
    records: tuple[MetadataRecord, ...] = (
        TopicRecord(name="t", topic_id=first),
        set_it,
        RemoveTopicRecord(topic_id=first),
        TopicRecord(name="t", topic_id=second),
        set_it,
    )
    entries = [Entry(at, START_MS + at, record) for at, record in enumerate(records)]
    rows = cache_typed_rows(frame_of(spark, entries), *configs.CONFIG_RECORDS)
    found = configs.config_history(rows).orderBy("start_offset").collect()
    assert [(row.end_offset, row.ended_by, row.previous_value) for row in found] == [
        (2, "topic removal", None),
        (None, None, None),
    ]
