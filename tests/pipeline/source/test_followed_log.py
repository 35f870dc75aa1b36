"""The log that a stream follows, on disks."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.damage import UnreadError
from quorate.pipeline.source.followed_log import DirectoryLog, QuorumLog
from quorate.pipeline.source.log_seek import EndSeeker
from quorate.pipeline.source.options import OptionError, parse_options
from quorate.pipeline.source.split_reader import read_split
from quorate.records.columnar.batch_run import BatchRun
from quorate.storage.file_system import OsFileSystem
from tests.pipeline.source.logs import (
    LogWriter,
    partition,
    paths_of,
    shortened,
    small_log,
    topic,
    voters,
)

if TYPE_CHECKING:
    from pathlib import Path


def followed(path: Path | str, **options: str) -> DirectoryLog:
    return DirectoryLog(parse_options({"path": str(path), **options}))


def test_beginnings(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    log.snapshot(11, [topic(1)])
    assert followed(log.root).beginning() == (None, 0)
    assert followed(log.root, startingOffsets="snapshot").beginning() == ("11-1", 11)
    assert followed(log.root, startingOffsets="latest").beginning() == (None, 21)
    assert followed(log.root, startingOffsets="3").beginning() == (None, 3)
    moment = followed(log.root, startingOffsets="2026-01-05T00:00:10Z")
    assert moment.beginning() == (None, 10)


def test_a_time_before_the_log_stands_for_where_it_begins(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=50)
    log.write([partition(number) for number in range(9)])
    log.snapshot(52, [topic(1)])
    for moment in ("2020-01-01", "2026-01-05T00:00:50Z"):
        assert followed(log.root, startingOffsets=moment).beginning() == (None, 52)


def test_a_snapshot_that_is_gone_is_named(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    with pytest.raises(OptionError, match=r"^path: snapshot 11-1 is gone"):
        followed(log.root).partitions("11-1", 11, 21)


def test_of_several_voters_the_log_comes_once_and_as_far_as_most_agree(tmp_path: Path) -> None:
    for node, total in ((1, 2), (2, 9), (3, 6)):
        log = LogWriter(tmp_path / str(node), node_id=node)
        log.lead(1)
        for number in range(total):
            log.write([partition(number)])
        (log.directory / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    path = ",".join(str(tmp_path / str(node)) for node in (1, 2, 3))
    log_of_three = followed(path)
    assert log_of_three.offsets() == (0, 7)
    splits, _ = log_of_three.partitions(None, 0, 7)
    assert {split.source_node for split in splits} == {2}


def test_a_log_of_which_a_part_cannot_be_opened_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end, its begin or whose it is would be others in a minute."""
    log = small_log(tmp_path / "c")
    log.snapshot(0, [topic(1)])
    opens = OsFileSystem.open
    closed: Path

    def opened(fs: OsFileSystem, path: str, *, create: bool = False) -> object:
        if path == str(closed):
            raise OSError(errno.EMFILE, "Too many open files", path)
        return opens(fs, path, create=create)

    monkeypatch.setattr(OsFileSystem, "open", opened)
    for closed in sorted(log.directory.glob("0*")):
        with pytest.raises(UnreadError, match=rf"^{closed}: byte 0: cannot be opened: Too many"):
            followed(log.root).offsets()
        assert followed(log.root, failOnDataLoss="false").offsets()[1] <= 21


def test_a_stream_begins_at_no_time_that_cannot_be_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = small_log(tmp_path / "c")
    moment = followed(log.root, startingOffsets="2026-01-05T00:00:10Z")

    def read(_file: object, _position: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error", str(log.file))

    monkeypatch.setattr(EndSeeker, "log_end", lambda _seeker, _directory: 21)
    monkeypatch.setattr("quorate.storage.file_system.OsFile.read_at", read)
    with pytest.raises(UnreadError, match=r"\.log: byte 0: cannot be read: Input/output error; "):
        moment.beginning()


def test_records_that_go_between_two_looks_are_missed(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=50)
    log.lead(3)
    log.write([partition(0)] * 9)
    log.snapshot(52, [topic(1)], epoch=3)
    with pytest.raises(UnreadError, match=r"^offsets 30 to 49 are gone .*failOnDataLoss"):
        followed(log.root).partitions(None, 30, 60)
    patient = followed(log.root, failOnDataLoss="false")
    splits, _ = patient.partitions(None, 30, 60)
    assert [(split.snapshot_offset, split.low) for split in splits] == [(51, -1), (None, 52)]
    # The snapshot comes with the next batch, which begins below the log.
    assert patient.partitions(None, 30, 40) == ([], ())
    log.file.unlink()
    with pytest.raises(UnreadError, match=r"^offsets 30 to 59 are gone "):
        followed(log.root).partitions(None, 30, 60)


def test_a_live_quorum_gives_nothing_that_is_uncommitted() -> None:
    options = {"bootstrap.servers": "h:1", "isolation": "read_uncommitted"}
    with pytest.raises(OptionError, match=r"^isolation: "):
        QuorumLog(parse_options(options))


def offsets_of(log: DirectoryLog, low: int, high: int) -> list[tuple[int | None, int]]:
    """The offsets that the tasks for a range give, with the node of each."""
    splits, _ = log.partitions(None, low, high)
    found: list[tuple[int | None, int]] = []
    for split in splits:
        for run in read_split(split):
            assert isinstance(run, BatchRun)
            bases = run.field("base_offset").tolist()
            found += [
                (split.source_node, offset) for offset in bases if split.overlaps(offset, offset)
            ]
    return found


def test_of_several_directories_the_one_that_holds_the_most_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short, long = voters(tmp_path)
    assert followed(short.root).offsets() == (12, 21)
    for paths in (paths_of(short, long), paths_of(long, short)):
        caplog.clear()
        log = followed(paths)
        assert log.beginning() == (None, 0)
        assert log.offsets() == (0, 21)
        assert offsets_of(log, 0, 21) == [(2, offset) for offset in range(21)]
        assert [log.epoch_before(offset) for offset in (0, 5, 21)] == [None, 1, 1]
        assert caplog.messages == [
            f"path: of 2 directories {long.directory} is read: it holds the most; it has the "
            "offsets from 0 up to 21"
        ]
        moment = followed(paths, startingOffsets="2026-01-05T00:00:05Z")
        assert moment.beginning() == (None, 5)
        snapshot = followed(paths, startingOffsets="snapshot")
        assert snapshot.beginning() == ("12-1", 12)
        splits, _ = snapshot.partitions("12-1", 12, 21)
        assert [split.source_node for split in splits] == [1, 2]


def test_what_one_directory_lacks_is_read_from_another(tmp_path: Path) -> None:
    short, long = voters(tmp_path)
    third = shortened(long, tmp_path / "third", node_id=3)
    _, position, _ = long.positions[15]
    long.file.write_bytes(long.file.read_bytes()[:position])
    log = followed(paths_of(short, third, long))
    assert log.offsets() == (0, 21)
    expected = [(2 if offset < 15 else 1, offset) for offset in range(21)]
    assert offsets_of(log, 0, 21) == expected
    assert offsets_of(log, 7, 18) == expected[7:18]
    assert [log.epoch_before(offset) for offset in (1, 15, 21)] == [1, 1, 1]
    paths, day = paths_of(short, third, long), "2026-01-05T00:0"
    for moment, offset in ((f"{day}0:03Z", 3), (f"{day}0:18Z", 18), (f"{day}1:39Z", 21)):
        assert followed(paths, startingOffsets=moment).beginning() == (None, offset)


def test_a_directory_is_kept_until_it_lacks_the_next_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two, three = logs = [LogWriter(tmp_path / str(node), node_id=node) for node in (1, 2, 3)]
    for each in logs:
        each.write([partition(number) for number in range(9)])
    log = followed(paths_of(*logs))
    for each in (two, three):
        each.write([partition(9)])
    assert log.offsets() == (0, 10)
    assert offsets_of(log, 0, 9) == [(2, 0)]
    one.write([partition(9)])
    for each in (one, three):
        each.write([partition(10)])
    # Node 2 is behind, and has what comes next.
    assert offsets_of(log, 9, 11) == [(2, 9), (1, 10)]
    assert len(caplog.messages) == 1
    assert offsets_of(log, 10, 11) == [(1, 10)]
    assert caplog.messages[1:] == [
        f"path: of 3 directories {one.directory} is read: it has the next record, 10; it has the "
        "offsets from 0 up to 11"
    ]
    for each in logs:
        each.write([partition(11)] * (12 - each.offset))
    assert offsets_of(log, 11, 12) == [(1, 11)]
    assert len(caplog.messages) == 2


def test_a_snapshot_of_any_directory_will_do(tmp_path: Path) -> None:
    short, long = voters(tmp_path)
    log = followed(paths_of(short, long))
    assert offsets_of(log, 20, 21) == [(2, 20)]
    splits, _ = log.partitions("12-1", 12, 12)
    assert [split.source_node for split in splits] == [1]
    with pytest.raises(OptionError, match=r"^path: snapshot 11-1 is gone from "):
        log.partitions("11-1", 11, 21)


def test_of_uncommitted_logs_the_furthest_is_read_whichever_comes_first(tmp_path: Path) -> None:
    short, long = voters(tmp_path)
    long.write([partition(21)])
    for paths in (paths_of(short, long), paths_of(long, short)):
        log = followed(paths, isolation="read_uncommitted")
        assert log.offsets() == (0, 22)
        assert followed(paths).offsets() == (0, 21)


def test_a_stream_begins_at_no_offset_behind_the_end(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    assert followed(log.root, startingOffsets="21").beginning() == (None, 21)
    with pytest.raises(OptionError, match=r"^startingOffsets: 22 lies behind .* at offset 21; "):
        followed(log.root, startingOffsets="22").beginning()
