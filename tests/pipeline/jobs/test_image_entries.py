"""The offset at which a log is cut for an image."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from quorate.pipeline.jobs import image_entries
from quorate.pipeline.jobs.registry import JOBS
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from tests.pipeline.jobs.histories import START_MS, Entry, History, frame_of
from tests.pipeline.jobs.rows import moment, rows_of

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession

# The clock of the third record's leader was behind.
TIMES_MS = (0, 20, 10, 30)


@pytest.mark.parametrize(
    ("at", "count"),
    [
        (None, 4),
        (-1, 0),
        (1, 2),
        (9, 4),
        (moment(START_MS + 10), 3),
        (moment(START_MS + 29), 3),
        (moment(START_MS - 1), 0),
    ],
)
def test_a_moment_is_a_place_in_the_log(
    spark: SparkSession, at: int | datetime | None, count: int
) -> None:
    entries = [Entry(n, START_MS + ms, NoOpRecord()) for n, ms in enumerate(TIMES_MS)]
    rows = image_entries.up_to(frame_of(spark, entries), at).collect()
    assert sorted(row.offset for row in rows) == list(range(count))


@pytest.mark.parametrize("has_transactions", [False, True])
def test_entries_that_are_kept_are_those_of_what_took_effect(
    spark: SparkSession, *, has_transactions: bool
) -> None:
    seed = time.time_ns() % 1_000_000_000
    undone = (BeginTransactionRecord, AbortTransactionRecord, EndTransactionRecord)
    frame = frame_of(
        spark,
        [
            entry
            for entry in History(seed, 300).entries
            if has_transactions or not isinstance(entry.record, undone)
        ],
    )
    found = image_entries.kept_entries(frame)
    assert found.storageLevel.useMemory
    # Lists come in no particular order.
    lists = {name: F.array_sort(name) for name in ("seldom", "broker")}
    expected = image_entries.image_entries(frame).withColumns(lists)
    assert rows_of(found.withColumns(lists)) == rows_of(expected), seed
    found.unpersist()


def test_the_command_asks_for_the_records_that_an_image_is_made_of() -> None:
    names = tuple(record.__name__ for record in image_entries.IMAGE_RECORDS)
    assert JOBS["image"].record_types == JOBS["diff"].record_types == names
