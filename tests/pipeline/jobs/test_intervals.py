"""Intervals that are open, and how many there are at a time."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from quorate.pipeline.jobs.intervals import INTERVAL_FIELDS, closed, counts_over_time
from quorate.records.metadata import NoOpRecord
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of
from tests.pipeline.jobs.rows import moment, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = T.StructType(list(INTERVAL_FIELDS[:4]))


def test_an_open_interval_lasts_to_the_end_of_the_frame(spark: SparkSession) -> None:
    frame = frame_of(spark, [Entry(at, START_MS + 10 * at, NoOpRecord()) for at in range(5)])
    rows = [
        (0, moment(START_MS), 2, moment(START_MS + 20)),
        (3, moment(START_MS + 30), None, None),
    ]
    found = closed(spark.createDataFrame(rows, SCHEMA), frame)
    assert found.schema.names == [field.name for field in INTERVAL_FIELDS]
    assert rows_of(found) == [
        (0, START_MS, 2, START_MS + 20, False, 20),
        (3, START_MS + 30, None, None, True, 10),
    ]


def test_counts_over_time_are_those_of_a_loop(spark: SparkSession) -> None:
    seed = time.time_ns() % 1_000_000_000
    draw = random.Random(seed)
    spans = []
    for _ in range(40):
        start = draw.randint(0, 300)
        spans.append((start, draw.choice((None, start + draw.randint(1, 90)))))
    frame = frame_of(spark, [Entry(0, START_MS + 400, NoOpRecord())])
    rows = [(0, moment(START_MS + start), *_end(end)) for start, end in spans]
    intervals = closed(spark.createDataFrame(rows, SCHEMA), frame)
    # With a bin for each millisecond nothing is put together: both rows of a bin are the count.
    found = set(rows_of(counts_over_time(intervals, 1000)))
    expected = {
        START_MS + at: sum(start <= at and (end is None or at < end) for start, end in spans)
        for at in {bound for span in spans for bound in span if bound is not None}
    }
    assert found == set(expected.items()), f"seed {seed}"
    few = counts_over_time(intervals, 3).collect()
    assert len(few) <= 6
    assert max(row["count"] for row in few) == max(expected.values()), f"seed {seed}"


def test_counts_over_time_sort_the_times_of_one_bin_at_a_time(spark: SparkSession) -> None:
    frame = frame_of(spark, [Entry(0, START_MS, NoOpRecord())])
    counts = counts_over_time(closed(spark.createDataFrame([], SCHEMA), frame), 3)
    plan = counts._jdf.queryExecution().optimizedPlan().toString()
    windows = re.findall(r"windowspecdefinition\((.*?), specifiedwindowframe", plan)
    # Of bins there are few; the times are in a window for each of them.
    assert [re.findall(r"(\w+)#", window) for window in windows] == [["bin"], ["bin", "at"]]


def _end(end: int | None) -> tuple[object, object]:
    return (None, None) if end is None else (1, moment(START_MS + end))
