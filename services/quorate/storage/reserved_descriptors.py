"""File descriptors reserved for storage when connections have used up all others.

See rule `disk_error_classes`. The soft limit of the process is set a little below the hard limit.
Sockets stop at the soft limit; a file that cannot be opened under it is opened under the hard
limit. So no client can make a healthy disk look like a failed one, and no descriptor has to be held
open for it.
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

# Descriptors for segments, a snapshot, quorum-state, checkpoints and directories, with a wide
# margin.
SPARE: Final = 64
_SPARE_SHARE: Final = 4
# Errors of resource exhaustion, which say nothing about the disk.
SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})

# The limit is process-wide: two threads that raise it at the same time would leave it raised.
_raised = threading.Lock()


def spare_of(limit: int) -> int:
    """Return how many of `limit` descriptors are reserved for files."""
    return min(SPARE, limit // _SPARE_SHARE)


def reserve_descriptors() -> int:
    """Raise the soft limit up to the reserve; return the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = hard if hard == resource.RLIM_INFINITY else hard - spare_of(hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return hard


def with_reserved_descriptor(call: Callable[[], T]) -> T:
    """Return the result of `call`, with the reserved descriptors once all others are in use."""
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
    """Call `os.open`, with a reserved descriptor if no other is left."""
    return with_reserved_descriptor(lambda: os.open(path, flags, mode))


def is_resource_shortage(error: BaseException) -> bool:
    """True if the error means exhausted descriptors, memory or threads, not a failed disk."""
    if isinstance(error, OSError):
        return error.errno in SHORTAGES
    if isinstance(error, RuntimeError):
        # The message of threading when the system has no more threads.
        return "can't start new thread" in str(error)
    return isinstance(error, MemoryError)
