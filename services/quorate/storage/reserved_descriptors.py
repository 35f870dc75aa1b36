"""File descriptors for the disk when connections have taken all others (rule 31).

The limit of the process is set a little below the one that the system allows. Sockets stop at the
lower one; a file that cannot be opened there is opened under the higher one. So no client can make
a healthy disk look like a failed one, and nothing has to be held open for it.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# Segments, a snapshot, quorum-state, checkpoints and directories, with much to spare.
SPARE: Final = 64
_SPARE_SHARE: Final = 4
# A machine that is short of something says nothing about its disk.
SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})

# The limit is the process's: two threads that raise it at once would leave it raised.
_raised = threading.Lock()


def spare_of(limit: int) -> int:
    """How many of so many descriptors are kept for files."""
    return min(SPARE, limit // _SPARE_SHARE)


def keep_spare() -> int:
    """Raise the process's limit up to the spare ones; returns what the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = hard if hard == resource.RLIM_INFINITY else hard - spare_of(hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return hard


def with_spare(call: Callable[[], T]) -> T:
    """What `call` returns, with the spare descriptors once all others are in use."""
    try:
        return call()
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
    with _raised:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            return call()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_descriptor(path: str, flags: int, mode: int = 0o644) -> int:
    """`os.open`, with a spare descriptor where there is no other."""
    return with_spare(lambda: os.open(path, flags, mode))


def is_shortage(error: BaseException) -> bool:
    """Whether this tells of descriptors, memory or threads, and not of the disk."""
    if isinstance(error, OSError):
        return error.errno in SHORTAGES
    if isinstance(error, RuntimeError):
        # What threading says when the system has no more of them.
        return "can't start new thread" in str(error)
    return isinstance(error, MemoryError)
