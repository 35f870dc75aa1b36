"""Anything else in the place of a small file is reported, and never waited for."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from quorate.settings.regular_files import NotRegularFileError, open_regular, read_regular

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_of_its_size_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"abc")
    assert read_regular(str(path), 3) == b"abc"
    with pytest.raises(NotRegularFileError, match="larger than 2 bytes"):
        read_regular(str(path), 2)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT])
@pytest.mark.parametrize("kind", ["a directory", "a pipe", "a socket", "a device"])
def test_what_is_no_file_is_named(kind: str, flags: int, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if kind == "a directory":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.close()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(NotRegularFileError, match=f"it is {kind}, not a regular file"):
        os.close(open_regular(str(path), flags))


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT])
@pytest.mark.parametrize("target", ["x", "no/file"])
def test_a_link_that_leads_nowhere_is_told_from_a_missing_file(
    flags: int, target: str, tmp_path: Path
) -> None:
    (tmp_path / "x").symlink_to(tmp_path / target)
    with pytest.raises(NotRegularFileError, match="a symbolic link that leads nowhere"):
        os.close(open_regular(str(tmp_path / "x"), flags))


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(str(tmp_path / "x"))
