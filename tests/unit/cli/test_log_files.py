"""A log file that is too large becomes the older one, and writers continue."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from quorate.cli import log_files
from quorate.cli.log_files import older_log, open_log, shorten_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that ten bytes are allowed in."""
    monkeypatch.setattr(log_files, "LOG_BYTES_MAX", 10)
    return tmp_path / "controller.log"


def test_a_process_goes_on_in_a_file_that_is_not_too_large(path: Path) -> None:
    for _ in range(2):
        with open_log(path) as log:
            log.write(b"12345")
    assert path.read_bytes() == b"1234512345"
    assert not older_log(path).exists()


def test_a_process_begins_a_new_file_where_the_last_one_is_too_large(path: Path) -> None:
    for text in (b"the first one", b"the second one", b"third"):
        with open_log(path) as log:
            log.write(text)
    assert path.read_bytes() == b"third"
    assert older_log(path).read_bytes() == b"the second one"


def test_a_process_begins_also_where_the_last_file_cannot_be_renamed(path: Path) -> None:
    path.write_bytes(b"the first one")
    older_log(path).mkdir()
    with open_log(path) as log:
        log.write(b"+")
    assert path.read_bytes() == b"the first one+"
    with pytest.raises(IsADirectoryError):
        shorten_log(path)


def test_a_running_process_goes_on_at_the_new_end(path: Path) -> None:
    with open_log(path) as log:
        for text in (b"12345", b"67890", b"x", b"new"):
            log.write(text)
            log.flush()
            shorten_log(path)
    assert path.read_bytes() == b"new"
    assert older_log(path).read_bytes() == b"1234567890x"


def test_a_file_that_is_missing_or_keeps_nothing_stays_as_it_is(path: Path) -> None:
    shorten_log(path)
    assert not path.exists()
    os.mkfifo(path)
    shorten_log(path)
    assert path.is_fifo()
    assert not older_log(path).exists()
