"""Bounds the log files of the controllers that `quorate up` runs.

A controller writes to its file itself, so that its last lines are there also if `up` was killed. A
file above the limit is renamed to the older one; one older file is kept.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from pathlib import Path

# Bytes of one file. Lines written between two checks come on top.
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
# Seconds between two checks of the files of running controllers.
LOOK_EVERY_S: Final = 5.0


def older_log(path: Path) -> Path:
    """The name of the older file."""
    return path.with_name(path.name + ".1")


def open_log(path: Path) -> BinaryIO:
    """Open the file for a new process, at its end; a new file if it is too large.

    Raises OSError if it cannot be opened. A file that cannot be renamed continues to grow:
    `shorten_log` reports the reason.
    """
    with suppress(OSError):
        if _is_too_large(path):
            path.replace(older_log(path))
    return path.open("ab")


def shorten_log(path: Path) -> None:
    """Move the contents of a running process's file to the older one, if it is too large.

    The process has the file open for appending: it continues at the new end. A line that it writes
    between the copy and the truncation is lost. Raises OSError.
    """
    if _is_too_large(path):
        shutil.copyfile(path, older_log(path))
        os.truncate(path, 0)


def _is_too_large(path: Path) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    # A pipe or a terminal stores nothing.
    return stat.S_ISREG(found.st_mode) and found.st_size > LOG_BYTES_MAX
