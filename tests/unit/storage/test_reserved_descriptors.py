"""Files are opened when sockets have taken every other descriptor (rule `disk_error_classes`)."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from quorate.storage.file_system import OsFileSystem
from quorate.storage.reserved_descriptors import (
    is_resource_shortage,
    open_descriptor,
    reserve_descriptors,
    spare_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def exhausted() -> Iterator[None]:
    """No descriptor is left below the soft limit, whatever other threads close during the test."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_every_way_to_open_a_file_has_a_spare_descriptor(tmp_path: Path) -> None:
    fs = OsFileSystem()
    path = str(tmp_path / "file")
    with exhausted():
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        file = fs.open(path, create=True)
        file.write_at(0, b"bytes")
        fs.sync_dir(str(tmp_path))
        assert fs.read(path) == b"bytes"
        assert fs.list_dir(str(tmp_path)) == ["file"]
        file.close()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == limit
        with pytest.raises(OSError, match="Too many open files"):
            os.open(path, os.O_RDONLY)


def test_other_errors_are_not_tried_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_descriptor(str(tmp_path / "missing"), os.O_RDONLY)


def test_some_descriptors_are_kept_for_files() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        hard = reserve_descriptors()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard - spare_of(hard), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (spare_of(100_000), spare_of(100)) == (64, 25)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_shortage_is_no_failed_disk(number: int) -> None:
    assert is_resource_shortage(OSError(number, os.strerror(number)))
    assert is_resource_shortage(MemoryError())
    assert is_resource_shortage(RuntimeError("can't start new thread"))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_an_error_of_the_disk_is_no_shortage(number: int) -> None:
    assert not is_resource_shortage(OSError(number, os.strerror(number)))
    assert not is_resource_shortage(RuntimeError("anything else"))
