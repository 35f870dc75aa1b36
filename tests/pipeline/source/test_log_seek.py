"""Places in a log: its end, and the offset of a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source import log_seek
from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.log_seek import EndSeeker, log_end
from quorate.pipeline.source.options import OptionError
from quorate.pipeline.source.splits import boundaries
from quorate.pipeline.source.time_search import TimePlace
from quorate.records.batch import HEADER_BYTES
from quorate.storage.file_system import OsFile
from tests.pipeline.source.logs import (
    DAY_MS,
    START_MS,
    STEP_MS,
    LogWriter,
    damaged,
    flip,
    log_with_a_clock_ahead,
    offsets,
    partition,
    paths_of,
    rows,
    small_log,
    time_place,
    topic,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from quorate.pipeline.source.directories import Directory


def place(directory: Directory, timestamp_ms: int) -> int:
    """The offset of a time in a log of which no time goes back."""
    found = time_place(directory, timestamp_ms)
    assert found.first == found.behind
    return found.first


def test_the_end_is_behind_the_last_whole_header(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    assert log_end(find_directory(str(log.root))) == 21
    with log.file.open("ab") as file:
        file.write(bytes(30))
    assert log_end(find_directory(str(log.root))) == 21
    log.snapshot(30, [topic(1)])
    assert log_end(find_directory(str(log.root))) == 30


def test_a_long_segment_is_entered_close_to_the_time(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    for _ in range(300):
        log.write([partition(0)] * 100)
    found = find_directory(str(log.root))
    assert found.segments[0].size_bytes > 2 * 1024 * 1024
    for offset in (0, 100, 14_900, 29_900):
        assert place(found, START_MS + offset * STEP_MS) == offset
        assert place(found, START_MS + offset * STEP_MS + 1) == offset + 100


def log_of_batches(path: Path) -> LogWriter:
    log = LogWriter(path)
    log.lead(1)
    for number in range(6):
        log.write([partition(number)] * 3)
    return log


def test_damage_in_front_of_a_whole_batch_is_not_the_end(tmp_path: Path) -> None:
    """Any bit may be flipped, also one that no CRC guards: in offset, length, epoch and magic."""
    log = log_of_batches(tmp_path / "c")
    clean = log.file.read_bytes()
    for at in (0, 2, -2):
        _, position, _ = log.positions[at]
        for bit in range(HEADER_BYTES * 8):
            flip(log.file, position + bit // 8, bit % 8)
            assert log_end(find_directory(str(log.root))) == 19, (at, bit)
            log.file.write_bytes(clean)


def test_what_does_not_check_at_the_very_end_may_be_on_its_way_to_the_disk(tmp_path: Path) -> None:
    log = log_of_batches(tmp_path / "c")
    whole = log.file.read_bytes()
    _, position, first = log.positions[-1]
    for half in (bytes(0), whole[position : position + 30], whole[position : position + 80]):
        for rest in (b"", bytes(2_000_000)):
            log.file.write_bytes(whole[:position] + half + rest)
            assert log_end(find_directory(str(log.root))) == first, (half, len(rest))


def test_a_last_batch_with_another_offset_counts_once_the_next_one_bears_it_out(
    tmp_path: Path,
) -> None:
    log = log_of_batches(tmp_path / "c")
    _, position, first = log.positions[-1]
    flip(log.file, position + 5)
    assert log_end(find_directory(str(log.root))) == first
    log.write([topic(1)])
    assert log_end(find_directory(str(log.root))) == log.offset


def test_a_long_segment_is_not_entered_at_a_batch_whose_offset_is_flipped(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    for _ in range(200):
        log.write([partition(0)] * 100)
    size_bytes = log.file.stat().st_size
    position, _ = boundaries(str(log.file), size_bytes, 1024 * 1024, first=0, last=None)[-1]
    assert position > 0
    flip(log.file, position + 5)
    assert log_end(find_directory(str(log.root))) == log.offset


def test_a_time_behind_damage_is_found(tmp_path: Path) -> None:
    log = log_of_batches(tmp_path / "c")
    flip(log.file, log.positions[1][1] + 16)
    found = find_directory(str(log.root))
    for _, _, first in log.positions[3:]:
        assert place(found, START_MS + first * STEP_MS) == first


@pytest.mark.parametrize("ask", [log_end, lambda found: place(found, START_MS)])
def test_a_segment_that_cannot_be_read_is_noted_once(
    tmp_path: Path, ask: Callable[[Directory], int]
) -> None:
    log = small_log(tmp_path / "c")
    found = find_directory(str(log.root))
    log.file.unlink()
    assert ask(found) in (0, 10)
    assert ask(found) in (0, 10)
    told = [(damage.file, damage.offset, damage.is_unread) for damage in found.damages]
    assert told == [(str(log.file), 10, True)]


def long_log(path: Path) -> LogWriter:
    """Two MiB of batches."""
    log = LogWriter(path)
    for _ in range(300):
        log.write([partition(0)] * 100)
    return log


class Reads:
    """Counts the bytes that are read of files."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.size_bytes = 0
        reads = OsFile.read_at

        def read_at(file: OsFile, position: int, size: int) -> bytes:
            found = reads(file, position, size)
            self.size_bytes += len(found)
            return found

        patch.setattr(OsFile, "read_at", read_at)

    def of(self, seeker: EndSeeker, log: LogWriter) -> tuple[int, int]:
        """The end of a log, and the bytes that were read to find it."""
        found = find_directory(str(log.root))
        self.size_bytes = 0
        return seeker.log_end(found), self.size_bytes


def test_a_second_look_begins_at_the_last_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, seeker, reads = long_log(tmp_path / "c"), EndSeeker(), Reads(monkeypatch)
    end, first = reads.of(seeker, log)
    last = log.file.stat().st_size - log.positions[-1][1]
    assert (end, first > 10 * last) == (log.offset, True)
    assert reads.of(seeker, log) == (log.offset, last)
    log.write([topic(1)])
    end, second = reads.of(seeker, log)
    assert (end, second < 2 * last) == (log.offset, True)
    log.roll()
    log.write([topic(1)])
    assert reads.of(seeker, log)[0] == log.offset


@pytest.mark.parametrize("is_longer", [False, True])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_log_that_was_written_again_is_looked_at_from_its_begin(
    tmp_path: Path, *, is_replaced: bool, is_longer: bool
) -> None:
    log, seeker = log_of_batches(tmp_path / "c"), EndSeeker()
    assert seeker.log_end(find_directory(str(log.root))) == 19
    other = LogWriter(tmp_path / "d")
    for number in range(30 if is_longer else 2):
        other.write([topic(number)])
    if is_replaced:
        other.file.rename(log.file)
    else:
        log.file.write_bytes(other.file.read_bytes())
    assert seeker.log_end(find_directory(str(log.root))) == other.offset


def test_damage_behind_the_remembered_batch_is_not_the_end(tmp_path: Path) -> None:
    log, seeker = log_of_batches(tmp_path / "c"), EndSeeker()
    assert seeker.log_end(find_directory(str(log.root))) == 19
    log.write([topic(1)])
    flip(log.file, log.positions[-1][1] + 16)
    assert seeker.log_end(find_directory(str(log.root))) == 19
    log.write([topic(2)])
    assert seeker.log_end(find_directory(str(log.root))) == 21


def test_a_time_is_a_place_in_front_of_damage_and_of_a_flipped_offset(tmp_path: Path) -> None:
    for name, byte in (("offset", 6), ("record", 70)):
        log = LogWriter(tmp_path / name)
        for number in range(20):
            log.write([partition(number)])
        flip(log.file, log.positions[10][1] + byte)
        place = "2026-01-05T00:00:10Z"
        after = rows(log.root, startingOffsets=place)
        assert offsets(after) == list(range(11, 20))
        assert [row["offset"] for row in damaged(after)] == [10]
        assert offsets(rows(log.root, endingOffsets=place)) == list(range(10))


def test_a_time_is_a_place_in_front_of_a_segment_that_is_missing(tmp_path: Path) -> None:
    logs = [LogWriter(tmp_path / str(node), node_id=node) for node in (1, 2)]
    for log in logs:
        for number in range(30):
            if number % 10 == 0:
                log.roll()
            log.write([partition(number)])
    one, other = logs
    (one.directory / f"{10:020d}.log").unlink()
    for second in (12, 20):
        place = f"2026-01-05T00:00:{second}Z"
        found = rows(one.root, startingOffsets=place)
        assert offsets(found) == list(range(20, 30))
        assert [row["offset"] for row in damaged(found)] == [10]
        for paths in (f"{one.root},{other.root}", f"{other.root},{one.root}"):
            found = rows(paths, startingOffsets=place, mergeDirectories="true")
            assert offsets(found) == list(range(second, 30))
            assert damaged(found) == []
    late = rows(one.root, startingOffsets="2026-01-05T00:00:21Z")
    assert (offsets(late), damaged(late)) == (list(range(21, 30)), [])


@pytest.mark.parametrize("short_bytes", [0, log_seek.SHORT_BYTES])
@pytest.mark.parametrize("count", [1, 1500])
def test_a_clock_that_was_ahead_cuts_no_record_off(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    short_bytes: int,
    count: int,
) -> None:
    """Segments of a few bytes and of two steps; all batches are looked at, or a few."""
    monkeypatch.setattr(log_seek, "SHORT_BYTES", short_bytes)
    values = [partition(number) for number in range(count)]
    logs = [
        log_with_a_clock_ahead(tmp_path / str(node), values=values, node_id=node) for node in (1, 2)
    ]
    of_epoch = 1 + 9 * count
    third = 2 * of_epoch
    # The fifth batch of the last epoch.
    wanted = third + 1 + 4 * count
    time_ms = START_MS + wanted * STEP_MS
    assert time_place(find_directory(str(logs[0].root)), time_ms) == TimePlace(of_epoch, wanted)
    if count > 1:
        return
    time = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()
    for paths in (str(logs[0].root), paths_of(*logs)):
        merged = {"mergeDirectories": "true"} if "," in paths else {}
        after = rows(paths, startingOffsets=time, **merged)
        assert offsets(after) == list(range(of_epoch, 3 * of_epoch))
        assert offsets(rows(paths, endingOffsets=time, **merged)) == list(range(wanted))
        start, end = caplog.messages
        assert start.startswith("startingOffsets: times go back in the log in ")
        assert end.startswith("endingOffsets: times go back in the log in ")
        for told, taken in ((start, of_epoch), (end, wanted)):
            assert f"offset {of_epoch} is the first of" in told
            assert f"offset {wanted - 1} is earlier again; offset {taken} is taken" in told
        caplog.clear()


def test_a_single_record_of_a_clock_that_was_ahead_is_seen_in_a_short_log(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    for number in range(30):
        if number % 10 == 0:
            log.roll()
        log.ahead_ms = DAY_MS if number == 14 else 0
        log.write([partition(number)])
    found = find_directory(str(log.root))
    assert time_place(found, START_MS + 25 * STEP_MS) == TimePlace(14, 25)
    assert time_place(found, START_MS + DAY_MS) == TimePlace(14, 30)


def test_a_time_of_a_long_log_is_found_with_little_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_seek, "SHORT_BYTES", 0)
    log = LogWriter(tmp_path / "c")
    for number in range(4):
        log.roll()
        log.lead(number + 1)
        for _ in range(600):
            log.write([partition(0)] * 100)
    size_bytes = sum(file.stat().st_size for file in {path for path, _, _ in log.positions})
    reads = Reads(monkeypatch)
    wanted = log.positions[1000][2]
    found = find_directory(str(log.root))
    assert time_place(found, START_MS + wanted * STEP_MS) == TimePlace(wanted, wanted)
    assert reads.size_bytes < size_bytes / 2


def test_an_early_batch_between_damaged_ones_is_not_cut_off(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    for number in range(6):
        log.ahead_ms = DAY_MS if number == 5 else 0
        log.write([partition(number)] * 3)
    for index in (1, 3):
        flip(log.file, log.positions[index][1] + HEADER_BYTES + 5)
    found = rows(log.root, endingOffsets="2026-01-05T12:00:00Z")
    assert offsets(found) == [*range(3), *range(6, 9), *range(12, 15)]
    assert [row["offset"] for row in damaged(found)] == [3, 9]


@pytest.mark.parametrize("lost", ["batches", "segment"])
def test_what_one_of_several_directories_has_lost_cuts_nothing_off(
    tmp_path: Path, lost: str
) -> None:
    logs = [
        log_with_a_clock_ahead(tmp_path / str(node), values=[partition(1)], node_id=node)
        for node in (1, 2, 3)
    ]
    segment = logs[1].directory / f"{10:020d}.log"
    if lost == "segment":
        segment.unlink()
    else:
        for path, position, _ in logs[1].positions:
            if path == segment:
                flip(path, position + HEADER_BYTES + 3)
    for order in (logs, logs[::-1]):
        found = rows(
            paths_of(*order), startingOffsets="2026-01-05T00:00:25Z", mergeDirectories="true"
        )
        assert offsets(found) == list(range(10, 30))
        assert damaged(found) == []


def test_a_tail_that_is_not_committed_moves_no_time(tmp_path: Path) -> None:
    logs = [LogWriter(tmp_path / str(node), node_id=node) for node in (1, 2, 3)]
    for log in logs:
        log.lead(1)
        for number in range(19):
            log.write([partition(number)])
    logs[0].ahead_ms = -DAY_MS
    for number in range(5):
        logs[0].write([partition(number)])
    time = "2026-01-05T00:00:10Z"
    merged = rows(paths_of(*logs), endingOffsets=time, mergeDirectories="true")
    assert offsets(merged) == list(range(10))
    each = rows(paths_of(*logs), endingOffsets=time)
    assert offsets(each) == sorted(3 * list(range(10)))


def test_records_below_the_logs_begin_move_no_time(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=5)
    while log.offset < 25:
        log.ahead_ms = DAY_MS if log.offset in (11, 12) else 0
        log.write([partition(log.offset)])
    log.snapshot(15, [topic(1)])
    for name in ("startingOffsets", "endingOffsets"):
        found = offsets(rows(log.root, **{name: "2026-01-05T00:00:18Z"}))
        assert found[-1] == (24 if name == "startingOffsets" else 17)
        assert (found[0] == 18) == (name == "startingOffsets")


def test_a_time_of_deleted_records_is_refused_where_later_ones_are_earlier(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=100)
    log.ahead_ms = -DAY_MS
    for number in range(20):
        log.write([partition(number)])
    log.snapshot(100, [topic(1)])
    time = datetime.fromtimestamp((START_MS + 50 * STEP_MS - DAY_MS) / 1000, UTC).isoformat()
    with pytest.raises(OptionError, match=r"^startingOffsets: .* is gone"):
        rows(log.root, startingOffsets=time)
    late = datetime.fromtimestamp((START_MS + 110 * STEP_MS - DAY_MS) / 1000, UTC).isoformat()
    assert offsets(rows(log.root, endingOffsets=late))[-1] == 109
