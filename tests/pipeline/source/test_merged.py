"""Several voters' directories as one log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.committed import shared_log
from quorate.pipeline.source.directories import find_directories
from quorate.pipeline.source.merged import choice_words
from quorate.pipeline.source.seeking import EndSeeker
from tests.pipeline.source.logs import (
    LogWriter,
    damaged,
    flip,
    offsets,
    paths_of,
    rows,
    shortened,
    voters,
)

if TYPE_CHECKING:
    from pathlib import Path

MERGED = {"mergeDirectories": "true"}


def words(*logs: LogWriter) -> str:
    return choice_words(shared_log(find_directories([str(log.root) for log in logs]), EndSeeker()))


def test_each_record_comes_once_in_whichever_order_they_are_named(tmp_path: Path) -> None:
    short, long = voters(tmp_path)
    for logs in ((short, long), (long, short)):
        found = rows(paths_of(*logs), **MERGED)
        assert offsets(found) == list(range(21))
        assert {row["source_node"] for row in found} == {2}
        assert words(*logs) == (
            f"of 2 directories {long.directory} is read, which holds the most: offsets 0 to 20"
        )


def test_what_the_chosen_one_lacks_comes_from_another(tmp_path: Path) -> None:
    short, long = voters(tmp_path)
    _, position, _ = long.positions[15]
    long.file.write_bytes(long.file.read_bytes()[:position])
    found = rows(paths_of(short, long), isolation="read_uncommitted", **MERGED)
    assert offsets(found) == list(range(21))
    assert {row["offset"]: row["source_node"] for row in found} == {
        offset: 2 if offset < 15 else 1 for offset in range(21)
    }


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("earliest", "7", range(7)),
        ("5", "latest", range(5, 21)),
        ("2026-01-05T00:00:05Z", "2026-01-05T00:00:15Z", range(5, 15)),
        ("13", "13", range(0)),
        ("latest", "latest", range(0)),
    ],
)
def test_places_are_those_of_the_whole_log(
    tmp_path: Path, start: str, end: str, expected: range
) -> None:
    short, long = voters(tmp_path)
    found = rows(paths_of(short, long), startingOffsets=start, endingOffsets=end, **MERGED)
    assert offsets(found) == list(expected)


def test_the_newest_snapshot_of_any_is_taken(tmp_path: Path) -> None:
    short, long = voters(tmp_path)
    found = rows(paths_of(short, long), startingOffsets="snapshot", **MERGED)
    # All records of a snapshot stand where it ends.
    assert sorted(set(offsets(found))) == list(range(11, 21))


def test_damage_that_each_has_is_told_once(tmp_path: Path) -> None:
    _, long = voters(tmp_path)
    file, position, first = long.positions[14]
    flip(file, position + 70)
    other = shortened(long, tmp_path / "other", node_id=3)
    found = rows(paths_of(long, other), **MERGED)
    assert offsets(found) == [offset for offset in range(21) if offset != first]
    assert [row["offset"] for row in damaged(found)] == [first]
