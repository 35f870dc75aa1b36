"""An aborted transaction has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs.transactions import committed_only
from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
)
from tests.pipeline.jobs.histories import START_MS, Entry, frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS: dict[str, MetadataRecord] = {
    "(": BeginTransactionRecord(name=None),
    ")": EndTransactionRecord(),
    "!": AbortTransactionRecord(reason=None),
    ".": NoOpRecord(),
}


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        ("..", [0, 1]),
        (".(.).", [0, 1, 2, 3, 4]),
        (".(.!.", [0, 4]),
        (".(.", [0]),
        ("(.!.(.).(.", [3, 4, 5, 6, 7]),
    ],
)
def test_only_what_was_ended_takes_effect(spark: SparkSession, log: str, kept: list[int]) -> None:
    entries = [Entry(at, START_MS, RECORDS[mark]) for at, mark in enumerate(log)]
    rows = committed_only(frame_of(spark, entries)).select("offset").collect()
    assert sorted(row.offset for row in rows) == kept
