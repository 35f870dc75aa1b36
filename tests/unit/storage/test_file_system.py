"""The file-system port, on the operating system's files."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

import pytest

from quorate.storage.file_system import (
    OsFile,
    OsFileSystem,
    parent,
    remove_durably,
    write_atomically,
)
from tests.unit.storage.conftest import Crashed, Replica

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FS = OsFileSystem()


def test_a_file_is_written_and_read_at_positions(tmp_path: Path) -> None:
    file = FS.open(str(tmp_path / "a"), create=True)
    file.write_at(3, b"abc")
    file.fdatasync()
    assert (file.read_at(0, 100), file.read_at(4, 1), file.size()) == (b"\0\0\0abc", b"b", 6)
    file.truncate(4)
    file.close()
    assert FS.read(str(tmp_path / "a")) == b"\0\0\0a"


def test_a_missing_file_is_not_made_unless_asked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FS.open(str(tmp_path / "a"))


def test_directories_are_listed_in_order(tmp_path: Path) -> None:
    FS.make_dirs(str(tmp_path / "x/y"))
    for name in ("b", "a"):
        FS.open(str(tmp_path / "x" / name), create=True).close()
    FS.sync_dir(str(tmp_path / "x"))
    assert FS.list_dir(str(tmp_path / "x")) == ["a", "b", "y"]


def test_a_rename_replaces_and_a_removal_removes(tmp_path: Path) -> None:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    write_atomically(FS, a, b"1")
    write_atomically(FS, b, b"2")
    FS.rename(a, b)
    assert (FS.exists(a), FS.read(b)) == (False, b"1")
    remove_durably(FS, b)
    remove_durably(FS, b)
    assert FS.list_dir(str(tmp_path)) == []


def test_a_read_only_file_is_still_read(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    write_atomically(FS, path, b"1")
    FS.make_read_only(path)
    assert os.stat(path).st_mode & 0o777 == 0o400
    file = FS.open(path)
    assert file.read_at(0, 9) == b"1"
    file.close()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_file_that_must_not_be_written_is_opened_for_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = str(tmp_path / "a")
    write_atomically(FS, path, b"1")
    real = os.open

    def refuse_writing(name: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_RDWR:
            raise OSError(number, os.strerror(number), name)
        return real(name, flags, mode)

    monkeypatch.setattr(os, "open", refuse_writing)
    file = FS.open(path)
    assert file.read_at(0, 9) == b"1"
    file.close()


def test_a_short_write_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: real(fd, data[:2], position))
    write_atomically(FS, str(tmp_path / "a"), b"abcde")
    assert FS.read(str(tmp_path / "a")) == b"abcde"


def test_a_short_read_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(FS, str(tmp_path / "a"), b"abcde")
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, position: real(fd, min(size, 2), position))
    file = FS.open(str(tmp_path / "a"))
    assert (file.read_at(0, 5), file.read_at(0, 9)) == (b"abcde", b"abcde")
    file.close()


def test_the_parent_of_a_path() -> None:
    assert [parent(path) for path in ("/a/b", "/a", "a")] == ["/a", "/", "."]


def test_an_atomic_write_leaves_the_old_or_the_new_bytes() -> None:
    for calls in range(10):
        replica = Replica()
        write_atomically(replica.disk, "/data/x", b"old")
        replica.crash_after(calls)
        try:
            write_atomically(replica.disk, "/data/x", b"new")
        except Crashed:
            pass
        else:
            assert calls > 4
        replica.revive()
        assert replica.disk.read("/data/x") in (b"old", b"new")


CALLS: dict[str, Callable[[OsFile], object]] = {
    "pwrite": lambda file: file.write_at(0, b"a"),
    "pread": lambda file: file.read_at(0, 1),
    "fstat": lambda file: file.size(),
    "ftruncate": lambda file: file.truncate(0),
    "fdatasync": lambda file: file.fdatasync(),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_error_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = str(tmp_path / "a")
    file = FS.open(path, create=True)
    monkeypatch.setattr(os, name, failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error") as raised:
        CALLS[name](file)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, path)
    monkeypatch.undo()
    file.close()


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_that_cannot_flush_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "fsync", failing(number))
    with pytest.raises(OSError, match="cannot flush it: use a local file system") as raised:
        FS.sync_dir(str(tmp_path))
    assert (raised.value.errno, raised.value.filename) == (number, str(tmp_path))
    monkeypatch.setattr(os, "fdatasync", failing(number))
    with pytest.raises(OSError, match="cannot flush it: use a local file system") as raised:
        write_atomically(FS, str(tmp_path / "a"), b"1")
    assert raised.value.filename == str(tmp_path / "a.tmp")


def test_a_directory_is_made_for_its_user_and_its_parents_as_ever(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        FS.make_dirs(str(tmp_path / "x/y/z"))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x", "x/y", "x/y/z")]
    assert modes == [0o755, 0o755, 0o700]
