"""One process per directory."""

from __future__ import annotations

import os
import subprocess
import sys
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


# What Java's FileChannel.tryLock does; it says how that ended and then waits for its stdin.
AS_KAFKA_LOCKS = """
import fcntl, sys
file = open(sys.argv[1], "a+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused", flush=True)
else:
    print("locked", flush=True)
sys.stdin.read()
"""


def lock_as_kafka(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", AS_KAFKA_LOCKS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_directory_that_a_stock_server_holds_is_refused(tmp_path: Path) -> None:
    with lock_as_kafka(tmp_path / ".lock") as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "locked\n"
        with pytest.raises(StorageError, match=r"\.lock is held by another program"):
            DirectoryLock(str(tmp_path)).acquire()
        with pytest.raises(StorageError, match=r"\.lock is held by another program"):
            DirectoryLock(str(tmp_path)).check()
        server.communicate()
    with DirectoryLock(str(tmp_path)):
        pass


def test_a_stock_server_is_refused_where_we_hold_the_directory(tmp_path: Path) -> None:
    with DirectoryLock(str(tmp_path)), lock_as_kafka(tmp_path / ".lock") as server:
        assert server.communicate()[0] == "refused\n"


def test_the_file_stays_empty_when_the_lock_is_given_back(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path))
    lock.acquire()
    lock.release()
    lock.release()
    assert (tmp_path / ".lock").read_bytes() == b""


def test_a_check_names_the_holder_and_leaves_no_file(tmp_path: Path) -> None:
    lock = DirectoryLock(str(tmp_path))
    lock.check()
    assert list(tmp_path.iterdir()) == []
    held = rf"\.lock is held by process {os.getpid()}"
    with lock, pytest.raises(StorageError, match=held):
        DirectoryLock(str(tmp_path)).check()
    lock.check()
    assert lock.path == str(tmp_path / ".lock")
    assert (tmp_path / ".lock").read_bytes() == b""
