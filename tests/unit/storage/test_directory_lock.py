"""One process per directory."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.errors import StorageError

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


@pytest.mark.parametrize("call", ["flock", "lockf"])
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, call, refuse)
    before = len(os.listdir("/proc/self/fd"))
    for act in (DirectoryLock(str(tmp_path)).acquire, DirectoryLock(str(tmp_path)).check):
        with pytest.raises(OSError, match="this file system has no locks: use a local") as raised:
            act()
        assert (raised.value.errno, raised.value.filename) == (number, str(tmp_path / ".lock"))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_full_disk_is_named_where_the_lock_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError, match="No space left") as raised:
        DirectoryLock(str(tmp_path)).acquire()
    assert raised.value.filename == str(tmp_path / ".lock")


def test_other_users_cannot_open_the_lock(tmp_path: Path) -> None:
    with DirectoryLock(str(tmp_path)):
        assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == 0o600
