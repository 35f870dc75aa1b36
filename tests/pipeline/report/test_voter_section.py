"""Voters' logs on the page: lag, damage, and where two part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs import compare
from quorate.pipeline.report.commands import LogCommands
from quorate.pipeline.report.voter_section import voter_verdict, voters_section
from tests.pipeline.log_frames import Log, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipeline.log_frames import Row


def voters(*, parting_epoch: int = 3) -> list[Row]:
    """Node 1 has 12 records, 2 has 9 of them, 3 has 5 and then two of its own."""
    shared = Log(epoch=0)
    shared.lead(1, [1, 2, 3])
    for _ in range(11):
        shared.add("NoOpRecord", {})
    own = Log(rows=shared.rows[:5], offset=5, epoch=parting_epoch, at_ms=shared.at_ms + 1)
    for _ in range(2):
        own.add("NoOpRecord", {})
    held = {1: shared.rows, 2: shared.rows[:9], 3: own.rows}
    return [row._replace(source_node=node) for node, rows in held.items() for row in rows]


def test_each_log_has_its_lag_and_its_end(spark: SparkSession) -> None:
    rows = voters()
    damage = rows[0]._replace(
        crc_valid=False,
        record_type=None,
        source_node=2,
        payload='{"error": "CRC", "file": "x.log", "position": 61, "bytes": 9}',
    )
    section = voters_section(compare.tables(frame(spark, [*rows, damage]), {}), LogCommands())
    logs, pairs = section.tables
    ends = {
        node: max(row.offset for row in rows if row.source_node == node) + 1 for node in (1, 2, 3)
    }
    longest = max(ends.values())
    assert {row[0]: (row[2], row[4]) for row in logs.rows} == {
        str(node): (end, longest - end) for node, end in ends.items()
    }
    assert [row[0] for row in logs.rows] == ["3", "2", "1"]
    assert logs.rows[1][6:] == (1, "x.log: byte 61: CRC")
    assert pairs.rows == (
        ("1 and 3", "5", "1 and 3", 7, 2),
        ("2 and 3", "5", "1 and 3", 7, 2),
        ("1 and 2", "nowhere", None, 9, 0),
    )
    assert "5 records" in section.plots[0]


@pytest.mark.parametrize(
    ("rows", "status", "words"),
    [
        (voters(), "ok", "nodes 1 and 3 part at offset 5 in epochs 1 and 3: a tail that was never"),
        (
            voters(parting_epoch=1),
            "critical",
            "nodes 1 and 3 part at offset 5, below an epoch that both have",
        ),
        ([row for row in voters() if row.source_node != 3], "ok", "what two of them have"),
    ],
)
def test_logs_part_in_different_epochs_or_something_is_wrong(
    spark: SparkSession, rows: list[Row], status: str, words: str
) -> None:
    verdict = voter_verdict(compare.divergence(frame(spark, rows)))
    assert verdict.status == status
    assert verdict.words.startswith(words)
