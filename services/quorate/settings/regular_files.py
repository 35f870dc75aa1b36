"""Opens regular files of bounded size; rejects pipes, devices and directories.

A pipe, a directory or gigabytes may be found in place of a small file. The process would hang, take
all memory, or end with a bare errno; these functions raise an error that says what was found.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

BYTES_MAX: Final = 4 * 1024 * 1024
MORE_FILES: Final = "raise the limit of open files (ulimit -n)"
"""The remedy for EMFILE, of sockets and processes as well."""
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotRegularFileError(Exception):
    """The path is not a suitable file; the message says what it is."""


def open_regular(path: str, flags: int, mode: int = 0o644) -> int:
    """Open a regular file, and return its descriptor. Raises NotRegularFileError and OSError."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    except OSError as error:
        # A directory cannot be opened for writing, a socket not at all: report what it is instead.
        _refuse(_mode_of(path), error)
        if error.errno in (errno.ENOENT, errno.ELOOP) and os.path.islink(path):
            raise NotRegularFileError("it is a symbolic link that leads nowhere") from error
        raise
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        _refuse(kind, None)
    return descriptor


def read_regular(path: str, bytes_max: int = BYTES_MAX) -> bytes:
    """Read a complete file. Raises NotRegularFileError if it is unsuitable or larger; OSError."""
    with open(open_regular(path, os.O_RDONLY), "rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise NotRegularFileError(f"it is larger than {bytes_max} bytes")
    return data


def _mode_of(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return stat.S_IFREG


def _refuse(mode: int, error: OSError | None) -> None:
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise NotRegularFileError(f"it is {name}, not a regular file") from error
