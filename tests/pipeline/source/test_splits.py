"""Splits lie at batch boundaries, wherever the file is cut."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.pipeline.source.splits import Split, boundaries, pack_splits
from tests.pipeline.source.logs import LogWriter, partition

if TYPE_CHECKING:
    from pathlib import Path


def test_boundaries_are_batches_wherever_the_file_is_cut(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    log.lead(1)
    for number in range(40):
        log.write([partition(number)] * (1 + number % 3))
    places = {(position, offset) for _, position, offset in log.positions}
    size = log.file.stat().st_size
    for split_bytes in (1, 100, 777, size - 1):
        found = boundaries(str(log.file), size, split_bytes, first=0, last=None)
        assert set(found) <= places
        assert found == sorted(found)
    # The file has nothing behind its last batch that would bear out its epoch.
    for last in (log.offset, None):
        assert boundaries(str(log.file), size, 1, first=0, last=last) == sorted(places)[:-1]
    assert boundaries(str(log.file), size, size, first=0, last=None) == [(0, 0)]


def test_a_batch_whose_offset_cannot_stand_there_is_no_boundary(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    for _ in range(4):
        log.write([partition(0)])
    data = bytearray(log.file.read_bytes())
    _, position, _ = log.positions[1]
    data[position] = 0x40
    log.file.write_bytes(data)
    found = boundaries(str(log.file), len(data), 1, first=0, last=4)
    assert [offset for _, offset in found] == [0, 2]
    assert boundaries(str(log.file), len(data), 1, first=0, last=2) == [(0, 0)]


def test_small_splits_share_a_task() -> None:
    splits = [Split("f", None, 0, size, None, None, 0, 9) for size in (10, 20, 80, 100, 5, 5)]
    sizes = [[split.end for split in pack] for pack in pack_splits(splits, 100)]
    assert sizes == [[10, 20], [80], [100], [5, 5]]
    assert pack_splits([], 100) == []
    empty = replace(splits[0], end=0)
    assert pack_splits([empty], 100) == [[empty]]


def test_a_file_that_cannot_be_read_is_left_whole(tmp_path: Path) -> None:
    assert boundaries(str(tmp_path / "absent"), 1000, 10, first=7, last=None) == [(0, 7)]
