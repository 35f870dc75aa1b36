"""Several voters' directories as one log."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.committed_end import shared_log
from quorate.pipeline.source.damage import Damage, UnreadError, check_read
from quorate.pipeline.source.directories import find_directories
from quorate.pipeline.source.followed_log import DirectoryLog
from quorate.pipeline.source.log_seek import EndSeeker
from quorate.pipeline.source.merged_log import choice_words
from quorate.pipeline.source.options import parse_options
from quorate.pipeline.source.record_repair import read_mended
from quorate.records.batch import read_header
from quorate.storage.file_system import OsFileSystem
from quorate.storage.layout import segment_name
from tests.pipeline.source.logs import (
    LogWriter,
    damaged,
    flip,
    offsets,
    partition,
    paths_of,
    rows,
    shortened,
    topic,
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


def three_voters(path: Path) -> list[LogWriter]:
    """Offsets 0 to 29 in three segments of each of three voters."""
    logs = [LogWriter(path / str(node), node_id=node) for node in (1, 2, 3)]
    for log in logs:
        for number in range(30):
            if number % 10 == 0:
                log.roll()
            log.write([partition(number)])
    return logs


def follow(*logs: LogWriter, **options: str) -> DirectoryLog:
    return DirectoryLog(parse_options({"path": paths_of(*logs), **options}))


def given(log: DirectoryLog, low: int, high: int) -> list[int]:
    """The offsets that a stream's batch gives; UnreadError as its tasks raise it."""
    splits, _ = log.partitions(None, low, high)
    found = []
    for split in splits:
        for part, batches in read_mended(split):
            for batch in batches:
                if isinstance(batch, Damage):
                    check_read([batch])
                else:
                    bases = batch.field("base_offset").tolist()
                    found += [offset for offset in bases if part.overlaps(offset, offset)]
    return found


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The paths of files that cannot be opened."""
    paths: set[str] = set()
    opens = OsFileSystem.open

    def opened(fs: OsFileSystem, path: str, *, create: bool = False) -> object:
        if path in paths:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opens(fs, path, create=create)

    monkeypatch.setattr(OsFileSystem, "open", opened)
    return paths


@pytest.mark.parametrize("base", [0, 10, 20])
@pytest.mark.parametrize("node", [1, 2])
def test_a_segment_that_cannot_be_opened_is_read_elsewhere(
    tmp_path: Path, closed: set[str], base: int, node: int
) -> None:
    logs = three_voters(tmp_path)
    closed.add(str(logs[node - 1].directory / segment_name(base)))
    log = follow(*logs)
    assert log.offsets() == (0, 30)
    assert given(log, 0, 30) == list(range(30))
    found = rows(paths_of(*logs), **MERGED)
    assert offsets(found) == list(range(30))
    assert damaged(found) == []


@pytest.mark.parametrize("base", [0, 10, 20])
def test_one_that_no_directory_can_open_ends_a_stream(
    tmp_path: Path, closed: set[str], base: int
) -> None:
    logs = three_voters(tmp_path)
    closed |= {str(log.directory / segment_name(base)) for log in logs}
    with pytest.raises(UnreadError, match=rf"{segment_name(base)}(: byte 0:)? cannot be opened"):
        given(follow(*logs), 0, 30)
    found = rows(paths_of(*logs), **MERGED)
    assert offsets(found) == [each for each in range(30) if not base <= each < base + 10]
    assert damaged(found)


def test_a_stream_does_not_wait_for_a_last_segment_that_cannot_be_opened(
    tmp_path: Path, closed: set[str]
) -> None:
    """Without it two directories agree on nothing behind it."""
    logs = three_voters(tmp_path)[:2]
    closed.add(str(logs[1].directory / segment_name(20)))
    with pytest.raises(UnreadError, match=r"cannot be opened"):
        follow(*logs).offsets()


def test_a_snapshot_that_cannot_be_opened_stops_no_stream_that_has_the_records(
    tmp_path: Path, closed: set[str]
) -> None:
    logs = three_voters(tmp_path)
    closed.add(str(logs[0].snapshot(15, [topic(1)])))
    assert follow(*logs).offsets() == (0, 30)
    with pytest.raises(UnreadError, match=r"\.checkpoint: byte 0: cannot be opened"):
        follow(logs[0]).offsets()


def spoiled(path: Path, how: str) -> None:
    """A snapshot with a flipped bit in its second batch, or without its end, or its footer."""
    data = path.read_bytes()
    match how:
        case "flipped":
            flip(path, read_header(data).size_bytes + 70)
        case "cut":
            path.write_bytes(data[:100])
        case _:
            path.write_bytes(data[:-78])


@pytest.mark.parametrize("how", ["flipped", "cut", "without a footer"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_damaged_snapshot_is_read_from_another_directory(
    tmp_path: Path, how: str, number: int
) -> None:
    _, long = voters(tmp_path)
    twins = [shortened(long, tmp_path / str(node), node_id=node) for node in (3, 4)]
    expected = rows(paths_of(*twins), **MERGED)
    (snapshot,) = twins[number].directory.glob("*.checkpoint")
    spoiled(snapshot, how)
    for start in ("earliest", "snapshot"):
        found = rows(paths_of(*twins), startingOffsets=start, **MERGED)
        assert offsets(found) == offsets(expected)
        assert damaged(found) == []
    log = follow(*twins)
    name, low = log.beginning()
    assert (name, low) == ("12-1", 12)
    splits, _ = log.partitions(name, low, 21)
    assert {split.source_node for split in splits if split.snapshot_offset} == {4 - number}


@pytest.mark.parametrize("how", ["flipped", "cut", "without a footer"])
def test_or_an_older_one_with_the_log_behind_it(tmp_path: Path, how: str) -> None:
    (log, *_) = three_voters(tmp_path)
    spoiled(log.snapshot(25, [topic(1)]), how)
    found = rows(log.root, startingOffsets="snapshot")
    assert offsets(found) == list(range(30))
    (told,) = damaged(found)
    assert told["segment"].startswith(f"{25:020}")
    assert follow(log, startingOffsets="snapshot").beginning() == (None, 0)
    log.snapshot(15, [topic(1)])
    found = rows(log.root, startingOffsets="snapshot")
    assert offsets(found) == [14] * 4 + list(range(15, 30))
    assert len(damaged(found)) == 1
    assert follow(log, startingOffsets="snapshot").beginning() == ("15-1", 15)


def test_where_neither_is_there_its_damage_is_told(tmp_path: Path) -> None:
    short, _ = voters(tmp_path)
    (snapshot,) = short.directory.glob("*.checkpoint")
    spoiled(snapshot, "flipped")
    for start in ("earliest", "snapshot"):
        found = rows(short.root, startingOffsets=start)
        assert len(damaged(found)) == 1
        assert set(offsets(found)) == {11, *range(12, 21)}
    spoiled(snapshot, "cut")
    for start in ("earliest", "snapshot"):
        found = rows(short.root, startingOffsets=start)
        assert offsets(found) == list(range(12, 21))
        reasons = sorted(row["payload"] for row in damaged(found))
        assert len(reasons) == 2
        assert "half-written" in reasons[0]
        assert "offsets 0 to 11 are missing: the log begins at 12" in reasons[1]
        with pytest.raises(UnreadError, match=r"offsets 0 to 11 are missing: the log begins at 12"):
            follow(short, startingOffsets=start).beginning()
        patient = follow(short, startingOffsets=start, failOnDataLoss="false")
        assert patient.beginning() == (None, 12)


def test_a_snapshot_ahead_of_the_log_tells_what_is_between(tmp_path: Path) -> None:
    """A follower that has fetched it, and not yet truncated its log."""
    log = LogWriter(tmp_path / "c")
    log.write([partition(0)] * 25)
    ahead = log.snapshot(30, [topic(1)])
    found = rows(log.root)
    assert offsets(found) == list(range(25))
    (told,) = damaged(found)
    assert told["offset"] == 25
    assert "offsets 25 to 29 are missing" in told["payload"]
    assert f"{ahead.name} stands for them" in told["payload"]
    assert offsets(rows(log.root, startingOffsets="snapshot")) == [29] * 4
    assert damaged(rows(log.root, startingOffsets="snapshot")) == []
    assert damaged(rows(log.root, endingOffsets="25")) == []
    assert offsets(rows(log.root, startingOffsets="30")) == []
    followed = follow(log)
    assert given(followed, 0, 25) == [0]
    with pytest.raises(UnreadError, match=r"offsets 25 to 29 are missing .* stands for them"):
        given(followed, 0, 30)
    assert follow(log, startingOffsets="snapshot").beginning() == ("30-1", 30)


def test_others_have_what_is_between(tmp_path: Path) -> None:
    behind, *others = logs = three_voters(tmp_path)
    for base in (10, 20):
        (behind.directory / segment_name(base)).unlink()
    behind.snapshot(30, [topic(1)])
    for log in others:
        log.write([partition(30)])
    assert given(follow(*logs), 0, 31) == list(range(31))
    found = rows(paths_of(*logs), **MERGED)
    assert (offsets(found), damaged(found)) == (list(range(31)), [])


def test_a_log_that_begins_behind_its_newest_snapshot_tells_the_gap(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=35)
    log.write([partition(0)] * 5)
    log.snapshot(30, [topic(1)])
    found = rows(log.root)
    assert offsets(found) == list(range(35, 40))
    (told,) = damaged(found)
    assert (told["offset"], "offsets 30 to 34 are missing" in told["payload"]) == (30, True)
    with pytest.raises(UnreadError, match=r"offsets 30 to 34 are missing"):
        follow(log).beginning()
    assert damaged(rows(log.root, startingOffsets="35")) == []


def test_a_directory_of_snapshots_alone_begins_with_the_newest(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    for end in (10, 20):
        log.snapshot(end, [topic(end)])
    for start in ("earliest", "snapshot"):
        assert offsets(rows(log.root, startingOffsets=start)) == [19] * 4
