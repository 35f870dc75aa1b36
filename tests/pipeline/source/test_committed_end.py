"""The end that a majority of the voters' disks agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.source.batch_reader import KraftReader
from quorate.pipeline.source.committed_end import shared_log
from quorate.pipeline.source.directories import find_directories, find_directory
from quorate.pipeline.source.log_seek import EndSeeker
from quorate.pipeline.source.options import parse_options
from tests.pipeline.source.logs import LogWriter, damaged, flip, offsets, partition, rows, topic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from quorate.pipeline.source.directories import Directory


def committed_end(directories: Sequence[Directory]) -> int:
    return shared_log(directories, EndSeeker()).end


def voter(path: Path, epochs: dict[int, int], end: int) -> Directory:
    """A log with these epochs, by their first offsets, up to `end`."""
    return find_directory(str(written(path, epochs, end).root))


def written(path: Path, epochs: dict[int, int], end: int, *, node_id: int = 1) -> LogWriter:
    log = LogWriter(path, node_id=node_id)
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


@pytest.mark.parametrize("kind", ["missing", "malformed", "old"])
def test_a_log_without_a_whole_checkpoint_has_the_epochs_of_its_batches(
    tmp_path: Path, kind: str
) -> None:
    """It has a tail that no other has, and is named first."""
    logs = [
        written(tmp_path / "1", {0: 1, 5: 2}, 12),
        written(tmp_path / "2", {0: 1, 5: 3}, 10),
        written(tmp_path / "3", {0: 1, 5: 3}, 9),
    ]
    checkpoint = logs[0].directory / "leader-epoch-checkpoint"
    checkpoint.unlink()
    if kind == "malformed":
        checkpoint.mkdir()
    elif kind == "old":
        checkpoint.write_text("0\n1\n1 0\n")
    found = [find_directory(str(log.root)) for log in logs]
    shared = shared_log(found, EndSeeker())
    assert shared.end == 9
    assert [span.end for span in shared.spans] == [5, 9, 9]
    told = [(damage.file, damage.error.partition(",")[0]) for damage in found[0].damages]
    is_told = kind == "malformed"
    assert told == [(str(checkpoint), "the log's epochs cannot be read")] * is_told
    assert all(damage.is_unread for damage in found[0].damages)


def test_a_snapshot_says_of_which_epoch_is_what_it_stands_for(tmp_path: Path) -> None:
    """One log begins where another has not come to yet."""
    later = LogWriter(tmp_path / "1", base=10)
    later.lead(2)
    later.write([partition(0)] * 9)
    later.snapshot(10, [topic(1)], epoch=1)
    (later.directory / "leader-epoch-checkpoint").write_text("0\n1\n2 10\n")
    logs = [find_directory(str(later.root)), voter(tmp_path / "2", {0: 1}, 8)]
    assert committed_end(logs) == 8


def test_each_log_is_mended_by_its_own_epochs(tmp_path: Path) -> None:
    """The log that is followed begins late, and knows nothing of the epochs before."""
    later = LogWriter(tmp_path / "1", base=24)
    later.epoch = 3
    later.write([partition(0)] * 6)
    later.snapshot(24, [topic(1)], epoch=3)
    (later.directory / "leader-epoch-checkpoint").write_text("0\n1\n3 24\n")
    whole = written(tmp_path / "2", {0: 1, 8: 2, 20: 3}, 30, node_id=2)
    dead = written(tmp_path / "3", {0: 1}, 15, node_id=3)
    flip(whole.file, whole.positions[10][1] + 70)
    paths = ",".join(str(log.root) for log in (later, whole, dead))
    options = parse_options({"path": paths, "mergeDirectories": "true"})
    reader = KraftReader(options)
    found = [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    # Node 3's record of that offset was never committed.
    assert {row["source_node"] for row in found if row["leader_epoch"] is not None} == {2}
    (told,) = damaged(found)
    assert told["offset"] == 10


def test_a_snapshot_ahead_of_the_segments_agrees_in_its_own_epoch(tmp_path: Path) -> None:
    logs = [LogWriter(tmp_path / str(node), node_id=node) for node in (1, 2)]
    for log in logs:
        for epoch, count in ((1, 5), (3, 9)):
            log.roll()
            log.lead(epoch)
            log.write([partition(0)] * count)
        (log.directory / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n3 6\n")
    (logs[0].directory / f"{6:020d}.log").unlink()
    logs[0].snapshot(12, [topic(1)], epoch=3)
    (logs[0].directory / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    assert committed_end(find_directories([str(log.root) for log in logs])) == 12
    found = rows(",".join(str(log.root) for log in logs), mergeDirectories="true")
    assert (offsets(found), damaged(found)) == (list(range(12)), [])
