"""Places in a log: its end, and the offset of a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.source.directories import find_directory
from quorate.pipeline.source.seeking import log_end, offset_at
from tests.pipeline.source.logs import START_MS, STEP_MS, LogWriter, partition, small_log, topic

if TYPE_CHECKING:
    from pathlib import Path


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
        assert offset_at(found, START_MS + offset * STEP_MS) == offset
        assert offset_at(found, START_MS + offset * STEP_MS + 1) == offset + 100
