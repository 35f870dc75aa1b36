"""Tables of an image equal the image that the controller's replay of the same records makes."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs import image, image_tables
from tests.pipeline.jobs.histories import History, frame_of
from tests.pipeline.jobs.images import image_of, tables_of
from tests.pipeline.jobs.rows import rows_of

if TYPE_CHECKING:
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
    entries = image.image_entries(image.up_to(frame, last)).persist()
    before = history.entries[: last + 1]
    expected = tables_of(image_of(before), before)
    assert entries.schema.simpleString() == image.ENTRIES_SCHEMA.simpleString()
    for name, schema in SCHEMAS.items():
        found = getattr(image_tables, name)(entries)
        assert found.schema.simpleString() == schema.simpleString()
        assert rows_of(found) == expected[name], f"seed {history.seed}, {name} at {last}"
    entries.unpersist()
