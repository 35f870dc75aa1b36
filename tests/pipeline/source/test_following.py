"""The log that a stream follows, on disks."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.damage import UnreadError
from quorate.pipeline.source.following import DirectoryLog, QuorumLog
from quorate.pipeline.source.options import OptionError, parse_options
from quorate.storage.files import OsFileSystem
from tests.pipeline.source.logs import LogWriter, partition, small_log, topic

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
        followed(log.root).parts("11-1", 11, 21)


def test_of_several_voters_the_log_comes_once_and_as_far_as_most_agree(tmp_path: Path) -> None:
    for node, total in ((1, 2), (2, 9), (3, 6)):
        log = LogWriter(tmp_path / str(node), node_id=node)
        log.lead(1)
        for number in range(total):
            log.write([partition(number)])
        (log.directory / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    path = ",".join(str(tmp_path / str(node)) for node in (1, 2, 3))
    log_of_three = followed(path)
    assert log_of_three.ends() == (0, 7)
    splits, _ = log_of_three.parts(None, 0, 7)
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
            followed(log.root).ends()
        assert followed(log.root, failOnDataLoss="false").ends()[1] <= 21


def test_a_stream_begins_at_no_time_that_cannot_be_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = small_log(tmp_path / "c")
    moment = followed(log.root, startingOffsets="2026-01-05T00:00:10Z")

    def read(_file: object, _position: int, _size: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error", str(log.file))

    monkeypatch.setattr("quorate.pipeline.source.following.log_end", lambda _directory: 21)
    monkeypatch.setattr("quorate.storage.files.OsFile.read_at", read)
    with pytest.raises(UnreadError, match=r"\.log: byte 0: cannot be read: Input/output error; "):
        moment.beginning()


def test_records_that_go_between_two_looks_are_missed(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=50)
    log.lead(3)
    log.write([partition(0)] * 9)
    log.snapshot(52, [topic(1)], epoch=3)
    with pytest.raises(UnreadError, match=r"^offsets 30 to 49 are gone .*failOnDataLoss"):
        followed(log.root).parts(None, 30, 60)
    patient = followed(log.root, failOnDataLoss="false")
    splits, _ = patient.parts(None, 30, 60)
    assert [(split.snapshot_offset, split.low) for split in splits] == [(51, -1), (None, 52)]
    # The snapshot comes with the next batch, which begins below the log.
    assert patient.parts(None, 30, 40) == ([], ())
    log.file.unlink()
    with pytest.raises(UnreadError, match=r"^offsets 30 to 59 are gone "):
        followed(log.root).parts(None, 30, 60)


def test_a_live_quorum_gives_nothing_that_is_uncommitted() -> None:
    options = {"bootstrap.servers": "h:1", "isolation": "read_uncommitted"}
    with pytest.raises(OptionError, match=r"^isolation: "):
        QuorumLog(parse_options(options))
