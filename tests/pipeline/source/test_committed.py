"""The end that a majority of the voters' disks agree on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.committed import shared_log
from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.seeking import EndSeeker
from tests.pipeline.source.logs import LogWriter, flip, partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.pipeline.source.directories import Directory


def committed_end(directories: Sequence[Directory]) -> int:
    return shared_log(directories, EndSeeker()).end


def voter(path: Path, epochs: dict[int, int], end: int) -> Directory:
    """A log with these epochs, by their first offsets, up to `end`."""
    return find_directory(str(written(path, epochs, end).root))


def written(path: Path, epochs: dict[int, int], end: int) -> LogWriter:
    log = LogWriter(path)
    while log.offset < end:
        if log.offset in epochs:
            log.lead(epochs[log.offset])
        else:
            log.write([partition(0)])
    lines = [f"{epoch} {start}" for start, epoch in epochs.items() if start < end]
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    (log.directory / "leader-epoch-checkpoint").write_text(text)
    return log


def test_what_one_of_three_holds_is_not_committed(tmp_path: Path) -> None:
    logs = [voter(tmp_path / str(end), {0: 1}, end) for end in (9, 7, 3)]
    assert committed_end(logs) == 7


def test_logs_that_parted_agree_up_to_there(tmp_path: Path) -> None:
    logs = [
        voter(tmp_path / "a", {0: 1, 5: 2}, 12),
        voter(tmp_path / "b", {0: 1, 6: 3}, 8),
        voter(tmp_path / "c", {0: 1, 6: 3}, 7),
    ]
    assert committed_end(logs) == 7
    assert committed_end([logs[0], logs[1]]) == 5


@pytest.mark.parametrize("at", [8, 16])
def test_a_log_with_damage_counts_up_to_its_last_batch(tmp_path: Path, at: int) -> None:
    """Its length or its magic is wrong in the batch of offset 4."""
    damaged = written(tmp_path / "a", {0: 1}, 9)
    flip(damaged.file, damaged.positions[4][1] + at)
    logs = [find_directory(str(damaged.root)), voter(tmp_path / "b", {0: 1}, 9)]
    assert committed_end(logs) == 9


def test_four_need_three(tmp_path: Path) -> None:
    logs = [voter(tmp_path / str(end), {0: 1}, end) for end in (9, 7, 5, 3)]
    assert committed_end(logs) == 5


@pytest.mark.parametrize("is_there", [False, True])
def test_a_log_whose_epochs_cannot_be_read_counts_by_its_offsets(
    tmp_path: Path, *, is_there: bool
) -> None:
    logs = [voter(tmp_path / str(end), {0: 1, 5: 2}, end) for end in (9, 7, 3)]
    checkpoint = Path(logs[0].path) / "leader-epoch-checkpoint"
    checkpoint.unlink()
    if is_there:
        checkpoint.mkdir()
    assert committed_end(logs) == 7
    told = [(damage.file, damage.error.partition(",")[0]) for damage in logs[0].damages]
    assert told == [(str(checkpoint), "the log's epochs cannot be read")] * is_there
    assert all(damage.is_unread for damage in logs[0].damages)
