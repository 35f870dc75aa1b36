"""A flipped bit in a batch's epoch is reported for that batch; a checkpoint may be wrong, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source import options
from quorate.pipeline.source.followed_log import DirectoryLog
from quorate.pipeline.source.options import parse_options
from tests.pipeline.source.logs import LogWriter, damaged, flip, partition, rows

if TYPE_CHECKING:
    from pathlib import Path

STARTS = ((1, 0), (2, 9), (4, 18))
WHOLE = STARTS
EPOCH_AT = 12
BITS = (0, 1, 6)


@pytest.fixture(autouse=True)
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch or two are a split."""
    monkeypatch.setattr(options, "_SPLIT_BYTES_MIN", 1)


def log_of_epochs(path: Path) -> LogWriter:
    """Three epochs of a LeaderChange and four batches each, in two segments."""
    log = LogWriter(path)
    for epoch, start in STARTS:
        assert log.offset == start
        log.lead(epoch)
        for number in range(4):
            if (epoch, number) == (2, 2):
                log.roll()
            log.write([partition(number)] * 2)
    return log


def record(log: LogWriter, starts: tuple[tuple[int, int], ...] | None) -> None:
    """Write the directory's checkpoint."""
    if starts is not None:
        lines = ["0", str(len(starts)), *(f"{epoch} {start}" for epoch, start in starts), ""]
        (log.directory / "leader-epoch-checkpoint").write_text("\n".join(lines))


def flip_epoch(log: LogWriter, number: int, bit: int) -> tuple[int, int, int]:
    """Its first offset, the epoch that it had, and the one that it has now."""
    file, position, first = log.positions[number]
    flip(file, position + EPOCH_AT + 3, bit)
    was = next(epoch for epoch, start in reversed(STARTS) if start <= first)
    return first, was, was ^ (1 << bit)


@pytest.mark.parametrize("bit", BITS)
@pytest.mark.parametrize("starts", [WHOLE, None, WHOLE[:2], WHOLE[1:]], ids=repr)
def test_the_batch_that_has_it_is_blamed_and_given_with_its_epoch(
    tmp_path: Path, starts: tuple[tuple[int, int], ...] | None, bit: int
) -> None:
    log = log_of_epochs(tmp_path / "c")
    record(log, starts)
    expected = {row["offset"]: row for row in rows(log.root)}
    assert damaged(list(expected.values())) == []
    for number in range(len(log.positions)):
        first, was, is_now = flip_epoch(log, number, bit)
        for split_bytes in ("200", "33554432"):
            found = rows(log.root, splitBytes=split_bytes)
            (told,) = damaged(found)
            assert told["offset"] == first
            assert f"epoch {is_now} " in told["payload"]
            assert f"epoch {was}" in told["payload"]
            records = {row["offset"]: row for row in found if row["record_type"] is not None}
            assert records == expected
        flip_epoch(log, number, bit)


def test_a_checkpoint_of_another_time_is_no_alarm(tmp_path: Path) -> None:
    log = log_of_epochs(tmp_path / "c")
    others = (
        ((1, 0),),
        ((4, 18),),
        ((2, 0), (3, 9), (5, 18)),
        ((1, 0), (2, 9), (4, 18), (7, 40)),
        ((3, 2),),
        (),
    )
    for starts in others:
        record(log, starts)
        for split_bytes in ("200", "33554432"):
            assert damaged(rows(log.root, splitBytes=split_bytes)) == []


def test_epochs_of_one_record_each(tmp_path: Path) -> None:
    """A LeaderChange that is alone in its epoch has only the checkpoint to bear it out.

    That may be of another time, so a record has another epoch only where a neighbour wants it, too.
    """
    log = LogWriter(tmp_path / "c")
    for epoch in range(1, 9):
        log.lead(epoch)
    assert damaged(rows(log.root)) == []
    record(log, tuple((epoch, epoch - 1) for epoch in range(1, 9)))
    for number in range(8):
        file, position, first = log.positions[number]
        flip(file, position + EPOCH_AT + 2)
        found = rows(log.root)
        assert [row["offset"] for row in damaged(found)] == [first]
        given = [row for row in found if row["record_type"] is not None]
        epochs = [row["leader_epoch"] for row in given]
        assert epochs[:number] + epochs[number + 1 :] == [n for n in range(1, 9) if n != number + 1]
        assert epochs[number] == number + 1 + (1 << 8)
        flip(file, position + EPOCH_AT + 2)
    (log.directory / "leader-epoch-checkpoint").unlink()
    flip(log.file, log.positions[3][1] + EPOCH_AT + 2)
    found = rows(log.root)
    assert [row["offset"] for row in damaged(found)] == [3]


@pytest.mark.parametrize("recorded", [((1, 0), (2, 3), (3, 5)), ((1, 0), (2, 3), (5, 5), (6, 6))])
def test_a_checkpoint_of_another_time_changes_no_epoch(
    tmp_path: Path, recorded: tuple[tuple[int, int], ...]
) -> None:
    """One from before the log was truncated, or of a newer log than this copy."""
    log = LogWriter(tmp_path / "c")
    for epoch, count in ((1, 2), (2, 1), (4, 0), (7, 2)):
        log.lead(epoch)
        for _ in range(count):
            log.write([partition(0)])
    record(log, recorded)
    found = [row for row in rows(log.root) if row["record_type"] is not None]
    assert [row["leader_epoch"] for row in found] == [1, 1, 1, 2, 2, 4, 7, 7, 7]


def test_the_last_batch_of_a_segment_has_the_epoch_in_front(tmp_path: Path) -> None:
    """A cut of the segment and a checkpoint of another time change nothing about it."""
    log = LogWriter(tmp_path / "c")
    log.lead(1)
    log.write([partition(0)] * 2)
    log.lead(4)
    for _ in range(2):
        log.write([partition(0)])
    log.roll()
    log.lead(6)
    record(log, ((3, 5), (6, 6)))
    found = rows(log.root, splitBytes="4096")
    assert damaged(found) == []
    assert [row["leader_epoch"] for row in found] == [1, 1, 1, 4, 4, 4, 6]


def test_a_damaged_checkpoint_is_told_and_batches_have_to_do(tmp_path: Path) -> None:
    log = log_of_epochs(tmp_path / "c")
    (log.directory / "leader-epoch-checkpoint").write_text("0\n1\n1 x\n")
    first, was, is_now = flip_epoch(log, 5, 0)
    found = rows(log.root)
    reasons = [row["payload"] for row in damaged(found)]
    assert len(reasons) == 2
    assert any("the log's epochs cannot be read" in each for each in reasons)
    assert any(f"epoch {is_now} " in each and f"epoch {was}" in each for each in reasons)
    assert next(row for row in found if row["offset"] == first)["leader_epoch"] in {None, was}
    followed = DirectoryLog(parse_options({"path": str(log.root)}))
    assert followed.offsets() == (0, log.offset)


def test_a_stream_remembers_no_epoch_that_is_flipped(tmp_path: Path) -> None:
    log = log_of_epochs(tmp_path / "c")
    for number in (*range(1, 5), 8, *range(10, 15)):
        first, was, _ = flip_epoch(log, number, 6)
        followed = DirectoryLog(parse_options({"path": str(log.root)}))
        assert followed.epoch_before(first + 1) in {None, was}
        flip_epoch(log, number, 6)
        assert followed.epoch_before(first + 1) == was
