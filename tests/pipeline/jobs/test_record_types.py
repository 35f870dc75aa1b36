"""What a log consists of."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quorate.pipeline.jobs.record_types import RECORD_TYPES_SCHEMA, record_types
from tests.pipeline.jobs.histories import START_MS, History, frame_of
from tests.pipeline.jobs.rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_records_and_bytes_by_type(spark: SparkSession) -> None:
    frame = frame_of(spark, History(START_MS, 200).entries)
    rows = frame.collect()
    counts = Counter(row.record_type for row in rows)
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row.record_type] += len(row.value)
    found = record_types(frame)
    assert found.schema.simpleString() == RECORD_TYPES_SCHEMA.simpleString()
    assert rows_of(found) == sorted((name, counts[name], sizes[name]) for name in counts)
