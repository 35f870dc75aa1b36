"""Where a log is cut for an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs import image
from quorate.pipeline.jobs.registry import JOBS
from quorate.records.metadata import NoOpRecord
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of
from tests.pipeline.jobs.rows import moment

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
    rows = image.up_to(frame_of(spark, entries), at).collect()
    assert sorted(row.offset for row in rows) == list(range(count))


def test_the_command_asks_for_the_records_that_an_image_is_made_of() -> None:
    names = tuple(record.__name__ for record in image.IMAGE_RECORDS)
    assert JOBS["image"].record_types == JOBS["diff"].record_types == names
