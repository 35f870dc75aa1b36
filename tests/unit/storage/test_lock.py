"""One process per directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from quorate.storage.errors import StorageError
from quorate.storage.lock import DirectoryLock

if TYPE_CHECKING:
    from pathlib import Path


def test_a_second_lock_is_refused_and_names_the_first_process(tmp_path: Path) -> None:
    held = rf"\.lock is held by process {os.getpid()}"
    with DirectoryLock(str(tmp_path)), pytest.raises(StorageError, match=held):
        DirectoryLock(str(tmp_path)).acquire()
    with DirectoryLock(str(tmp_path)):
        pass


def test_the_file_stays_empty_when_the_lock_is_given_back(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path))
    lock.acquire()
    lock.release()
    lock.release()
    assert (tmp_path / ".lock").read_bytes() == b""
