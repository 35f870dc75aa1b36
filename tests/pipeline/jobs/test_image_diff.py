"""A difference is the same as a comparison of two images of the controller."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs import image_diff, image_entries, image_tables
from quorate.pipeline.jobs.registry import PipelineError
from quorate.records.metadata import ConfigRecord, NoOpRecord
from tests.pipeline.jobs.histories import START_MS, Entry, History, frame_of
from tests.pipeline.jobs.images import image_of, tables_of
from tests.pipeline.jobs.rows import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from quorate.pipeline.jobs.log_position import LogPosition
    from tests.pipeline.jobs.images import Rows

# How many columns of a table identify its rows.
KEYS = {"topics": (1,), "partitions": (1, 2), "brokers": (0,), "configs": (0, 1, 2), "acls": (7,)}


def test_every_difference_of_two_images(spark: SparkSession) -> None:
    history = History(time.time_ns() % 1_000_000_000, 500)
    middle = len(history.entries) // 2
    log = frame_of(spark, history.entries)
    before = image_entries.image_entries(image_entries.up_to(log, middle - 1)).persist()
    after = image_entries.image_entries(log).persist()
    found = image_diff.diff(before, after)
    assert found.schema.simpleString() == image_diff.DIFF_SCHEMA.simpleString()
    told = sorted(
        (row.subject, row.change, tuple(row.fields or ()), len(json.loads(row.before or "{}")))
        for row in found.collect()
    )
    old = tables_of(image_of(history.entries[:middle]), history.entries, has_secrets=True)
    new = tables_of(image_of(history.entries), history.entries, has_secrets=True)
    assert told == sorted(differences(old, new)), f"seed {history.seed}"


def differences(
    old: dict[str, Rows], new: dict[str, Rows]
) -> Iterator[tuple[str, str, tuple[str, ...], int]]:
    """(table, change, fields, the number of fields that show an earlier value)."""
    for table, columns in KEYS.items():
        names = getattr(image_tables, f"{table.upper()}_SCHEMA").names
        before = {tuple(row[at] for at in columns): row for row in old[table]}
        after = {tuple(row[at] for at in columns): row for row in new[table]}
        for key in before.keys() | after.keys():
            if key not in after:
                yield table, "removed", (), len(names)
            elif key not in before:
                yield table, "added", (), 0
            elif before[key] != after[key]:
                pairs = zip(names, before[key], after[key], strict=True)
                changed = sorted(name for name, a, b in pairs if a != b)
                yield table, "changed", tuple(changed), len(changed)


def test_another_password_is_a_difference_that_tells_neither(spark: SparkSession) -> None:
    entries = [
        Entry(at, START_MS + at, record)
        for at, record in enumerate(
            ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value=value)
            for value in ("hunter2", "hunter3")
        )
    ]
    log = frame_of(spark, entries)
    before, after = (
        image_entries.image_entries(image_entries.up_to(log, at)).persist() for at in (0, 1)
    )
    found = image_diff.diff(before, after).collect()
    assert [(row.key, row.change, row.before, row.after) for row in found] == [
        ("BROKER 1 ssl.key.password", "changed", '{"value":"(withheld)"}', '{"value":"(withheld)"}')
    ]


@pytest.mark.parametrize(("begin", "end"), [(4000, 100), (moment(START_MS + 1), moment(START_MS))])
def test_a_difference_does_not_run_backwards(
    spark: SparkSession, begin: LogPosition, end: LogPosition
) -> None:
    log = frame_of(spark, [Entry(0, START_MS, NoOpRecord())])
    with pytest.raises(PipelineError, match=r"^--to: .* comes before --from, .*; exchange the two"):
        image_diff.tables(log, {"from": begin, "to": end})
