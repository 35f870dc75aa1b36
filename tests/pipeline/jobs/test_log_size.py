"""Logs that count as small before Spark starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quorate.pipeline.jobs.log_size import SMALL_LOG_BYTES_MAX, is_small_log
from quorate.pipeline.source.directories import find_directories
from tests.pipeline.source.logs import small_log

if TYPE_CHECKING:
    from pathlib import Path


def test_a_log_is_small_up_to_so_many_bytes_of_all_directories(tmp_path: Path) -> None:
    one, other = (small_log(tmp_path / name, node_id=at) for at, name in enumerate("ab"))
    paths = [str(one.root), str(other.root)]
    assert is_small_log(find_directories(paths))
    size = sum(file.stat().st_size for log in (one, other) for file in log.directory.glob("*.log"))
    os.truncate(one.file, one.file.stat().st_size + SMALL_LOG_BYTES_MAX - size)
    assert is_small_log(find_directories(paths))
    os.truncate(one.file, one.file.stat().st_size + 1)
    assert not is_small_log(find_directories(paths))
    assert is_small_log(find_directories(paths[1:]))


def test_a_log_whose_size_is_not_known_is_not_small() -> None:
    assert not is_small_log([])
