"""Epochs of records, found in segments and in the names of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.source import record_epochs
from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.record_epochs import RecordEpochs
from tests.pipeline.source.logs import LogWriter, partition, small_log

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def before(log: LogWriter, offset: int) -> int | None:
    return RecordEpochs().before(find_directory(str(log.root)), offset)


def long_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> LogWriter:
    """Many batches in a segment that is cut into small parts: an epoch for each ten offsets."""
    monkeypatch.setattr(record_epochs, "_STEP_BYTES", 500)
    log = LogWriter(path)
    for epoch in range(1, 30):
        log.lead(epoch)
        for number in range(3):
            log.write([partition(number)] * 3)
    return log


def test_the_epoch_is_that_of_the_batch_with_the_record_below(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    found = [before(log, offset) for offset in range(23)]
    assert found == [None, *[1] * 10, *[2] * 11, None]


def test_a_long_segment_is_entered_near_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = long_log(tmp_path / "c", monkeypatch)
    directory, one = find_directory(str(log.root)), RecordEpochs()
    forwards = [one.before(directory, offset) for offset in range(1, 291)]
    assert forwards == [1 + offset // 10 for offset in range(290)]
    backwards = [one.before(directory, offset) for offset in range(290, 0, -1)]
    assert backwards == forwards[::-1]


def test_below_the_first_segment_a_snapshot_tells(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c", base=52)
    log.epoch = 4
    log.write([partition(0)])
    log.snapshot(52, [], epoch=3)
    log.snapshot(0, [], epoch=0)
    assert [before(log, offset) for offset in (0, 51, 52, 53)] == [None, None, 3, 4]


def test_a_snapshot_without_a_log_tells_too(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "c")
    log.snapshot(52, [], epoch=3)
    assert before(log, 52) == 3


def test_a_damaged_batch_has_none_and_hides_no_other(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    path, at, base = log.positions[2]
    data = bytearray(path.read_bytes())
    data[at + 16] ^= 5
    path.write_bytes(data)
    assert base == 4
    assert [before(log, offset) for offset in (4, 5, 7, 8)] == [1, None, None, 1]


def test_a_segment_that_is_gone_has_none(tmp_path: Path) -> None:
    log = small_log(tmp_path / "c")
    directory = find_directory(str(log.root))
    log.file.unlink()
    assert RecordEpochs().before(directory, 21) is None
