"""Reads the input of a command: a regular file, a pipe (`<(...)`), or `-`, standard input.

A pipe may never end. It is read up to a limit in bytes and seconds, without an event loop, so that
Ctrl-C ends the wait. A file whose name is `-` is given as `./-`.
"""

from __future__ import annotations

import os
import select
import stat
import time
from typing import Final

from quorate.settings.regular_files import BYTES_MAX, NotRegularFileError, read_regular

STDIN: Final = "-"
# Seconds for the program at the other end of a pipe, which may render a chart or ask a server.
TIMEOUT_S: Final = 30.0
_CHUNK_BYTES: Final = 64 * 1024


def read_input(path: str, bytes_max: int = BYTES_MAX, timeout_s: float = TIMEOUT_S) -> bytes:
    """All bytes of the input; those of a pipe are consumed.

    Raises NotRegularFileError if it is too large, does not end in time, or is neither a file nor a
    pipe, and OSError.
    """
    if path == STDIN:
        return _read_to_end(0, bytes_max, timeout_s)
    if not _is_pipe(path):
        return read_regular(path, bytes_max)
    # Opened this way, a pipe does not wait for a writer. `poll` does, within the limit.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return _read_to_end(descriptor, bytes_max, timeout_s)
    finally:
        os.close(descriptor)


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def _read_to_end(descriptor: int, bytes_max: int, timeout_s: float) -> bytes:
    end_s = time.monotonic() + timeout_s
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    data = bytearray()
    while True:
        left_ms = (end_s - time.monotonic()) * 1000
        if left_ms <= 0 or not ready.poll(left_ms):
            raise NotRegularFileError(
                f"it has not ended within {timeout_s:g} s: end what writes it"
            )
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            # Another reader was faster.
            continue
        if not chunk:
            return bytes(data)
        data += chunk
        if len(data) > bytes_max:
            raise NotRegularFileError(f"it is larger than {bytes_max} bytes")
