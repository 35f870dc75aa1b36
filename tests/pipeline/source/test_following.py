"""The log that a stream follows, on disks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.following import DirectoryLog, QuorumLog
from quorate.pipeline.source.options import OptionError, parse_options
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


def test_a_live_quorum_gives_nothing_that_is_uncommitted() -> None:
    options = {"bootstrap.servers": "h:1", "isolation": "read_uncommitted"}
    with pytest.raises(OptionError, match=r"^isolation: "):
        QuorumLog(parse_options(options))
