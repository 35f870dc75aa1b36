"""Files, pipes and standard input are read whole, and never waited for without an end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from quorate.settings.input_files import read_input
from quorate.settings.regular_files import NotRegularFileError

if TYPE_CHECKING:
    from pathlib import Path

READ_STDIN = (
    "import sys; from quorate.settings.input_files import read_input;"
    "sys.stdout.buffer.write(read_input('-'))"
)
# More than a pipe holds.
LONG = bytes(range(256)) * 1024


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    assert read_input(str(path), 3) == b"abc"
    with pytest.raises(NotRegularFileError, match="larger than 2 bytes"):
        read_input(str(path), 2)


def test_a_pipe_is_read_to_its_end_from_a_writer_that_comes_later(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(LONG,))
    writer.start()
    try:
        assert read_input(str(path)) == LONG
    finally:
        writer.join()


def test_a_pipe_that_is_too_long_is_named(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"abcd")
    try:
        with pytest.raises(NotRegularFileError, match=r"^it is larger than 3 bytes$"):
            read_input(f"/dev/fd/{reader}", 3)
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("has_writer", [True, False])
def test_a_pipe_that_does_not_end_is_given_up(tmp_path: Path, *, has_writer: bool) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR) if has_writer else None
    try:
        if writer is not None:
            os.write(writer, b"abc")
        with pytest.raises(
            NotRegularFileError, match=r"^it has not ended within 0\.01 s: end what"
        ):
            read_input(str(path), timeout_s=0.01)
    finally:
        if writer is not None:
            os.close(writer)


def test_a_dash_is_standard_input_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(LONG)
    command = [sys.executable, "-c", READ_STDIN]
    piped = subprocess.run(command, input=LONG, capture_output=True, check=True)
    with path.open("rb") as file:
        redirected = subprocess.run(command, stdin=file, capture_output=True, check=True)
    nothing = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert (piped.stdout, redirected.stdout, nothing.stdout) == (LONG, LONG, b"")


@pytest.mark.parametrize("kind", ["a directory", "a device"])
def test_what_is_neither_file_nor_pipe_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if kind == "a directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(NotRegularFileError, match=f"it is {kind}, not a regular file"):
        read_input(str(path))
    with pytest.raises(FileNotFoundError):
        read_input(str(tmp_path / "none"))
