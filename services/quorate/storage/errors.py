"""Storage errors; each message names the file, the position and the remedy."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.settings.regular_files import MORE_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

# The remedy for a voter whose vote or acknowledgements cannot be known any more.
FORMAT_EMPTY_HINT: Final = (
    "with the rest of the quorum healthy, format an empty directory in its place: under its new"
    " directory id this node follows, and does not vote"
)


QUORUM_RECOVERY_HINT: Final = (
    "where no quorum is left, `quorate storage recover` makes one out of the logs, in an epoch of"
    " its own"
)


class StorageError(Exception):
    """The directory cannot be used as it is; the message gives the place and the remedy."""


class DirectoryInUseError(StorageError):
    """Another process holds the lock of the directory."""


class DamagedLogError(StorageError):
    """A batch that was valid once fails verification, found while serving it.

    See rule `disk_fail_stop`.
    """


class DamagedSnapshotError(StorageError):
    """A snapshot fails verification: a CRC, its header, its footer or its batch order."""


class LostFilesError(FileNotFoundError):
    """Files in use were removed or replaced by another program: the disk counts as failed."""


class TruncationPointError(ValueError):
    """The log cannot be truncated at an offset where no batch begins; nothing was changed."""


_LOCAL: Final = "use a local file system, such as ext4 or XFS"
# Errors of a file system that does not support a call: NFS without a lock service, CIFS, FUSE.
UNSUPPORTED: Final = frozenset(
    {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
)
NO_LOCKS: Final = f"this file system has no locks: {_LOCAL}"
NO_FLUSH: Final = f"this file system cannot flush it: {_LOCAL}"
_REMEDIES: Final = {
    errno.EACCES: "give it to the user that runs this process",
    errno.EPERM: "give it to the user that runs this process",
    errno.EROFS: "mount the file system writable",
    errno.ENOSPC: "free space, or enlarge the disk",
    errno.EDQUOT: "free space, or raise the quota",
    errno.EIO: "see how the disk is",
    errno.EMFILE: MORE_FILES,
}


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Add the path to an OSError without one: calls by descriptor raise such errors."""
    try:
        yield
    except OSError as error:
        raise named(error, path) from None


def named(error: OSError, path: str, remedy: str = "") -> OSError:
    """Return the error with the path of its file; `remedy` is for an error in UNSUPPORTED."""
    if error.filename is not None or error.errno is None:
        return error
    words = error.strerror or os.strerror(error.errno)
    if remedy and error.errno in UNSUPPORTED:
        words = f"{words}: {remedy}"
    return OSError(error.errno, words, path)


def problem_of(error: OSError, path: str) -> str:
    """Describe file, problem and remedy on one line; `path` if the error names no file."""
    remedy = _REMEDIES.get(error.errno or 0, "")
    words = error.strerror or str(error)
    return f"{error.filename or path}: {words}{remedy and f': {remedy}'}"
