"""Tables of an image equal the image that the controller's replay of the same records makes."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs import image_entries, image_tables
from quorate.pipeline.jobs.job_runner import read_log
from quorate.pipeline.jobs.registry import PipelineError
from quorate.records.metadata import NoOpRecord
from tests.pipeline.jobs.histories import START_MS, Entry, History, frame_of
from tests.pipeline.jobs.images import image_of, tables_of
from tests.pipeline.jobs.rows import moment, rows_of
from tests.pipeline.source.logs import small_log

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMAS = {
    "topics": image_tables.TOPICS_SCHEMA,
    "partitions": image_tables.PARTITIONS_SCHEMA,
    "brokers": image_tables.BROKERS_SCHEMA,
    "configs": image_tables.CONFIGS_SCHEMA,
    "acls": image_tables.ACLS_SCHEMA,
}


@pytest.mark.parametrize("part", [0.4, 1.0])
def test_the_tables_are_those_of_the_controllers_image(spark: SparkSession, part: float) -> None:
    history = History(time.time_ns() % 1_000_000_000, 600)
    last = int(part * len(history.entries)) - 1
    frame = frame_of(spark, history.entries, shuffled=random.Random(history.seed))
    entries = image_entries.image_entries(image_entries.up_to(frame, last)).persist()
    before = history.entries[: last + 1]
    expected = tables_of(image_of(before), before)
    assert entries.schema.simpleString() == image_entries.ENTRIES_SCHEMA.simpleString()
    for name, schema in SCHEMAS.items():
        found = getattr(image_tables, name)(entries)
        assert found.schema.simpleString() == schema.simpleString()
        assert rows_of(found) == expected[name], f"seed {history.seed}, {name} at {last}"
    entries.unpersist()


def test_an_offset_behind_the_end_is_refused_with_where_that_is(spark: SparkSession) -> None:
    # Nothing that an image is made of stands at the end.
    log = frame_of(spark, [Entry(offset, START_MS, NoOpRecord()) for offset in range(9)])
    for at in (8, 9, moment(START_MS + 60_000)):
        assert not image_tables.tables(log, {"at": at})["topics"].collect()
    words = "^--at: the log ends at offset 9, before offset 10; name that or an earlier one$"
    with pytest.raises(PipelineError, match=words):
        image_tables.tables(log, {"at": 10})


def test_the_end_is_that_of_the_whole_log(spark: SparkSession, tmp_path: Path) -> None:
    """The command reads with all but the rows of an image's own types slim."""
    log = small_log(tmp_path / "c")
    log.lead(3)
    options = {"path": str(log.root), "recordTypes": "TopicRecord", "payload": "control"}
    frame = read_log(spark, options)
    assert image_tables.tables(frame, {"at": log.offset})["topics"].count() == 3
    with pytest.raises(PipelineError, match=f"ends at offset {log.offset}, before"):
        image_tables.tables(frame, {"at": log.offset + 1})
