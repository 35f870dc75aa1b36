"""What storage refuses, in words that name the file, the place in it and the way out."""

from __future__ import annotations

from typing import Final

# The way back for a voter whose promises cannot be known any more.
START_ANEW: Final = (
    "with the rest of the quorum healthy, format an empty directory in its place: under its new"
    " directory id this node follows, and does not vote"
)


START_AFRESH: Final = (
    "where no quorum is left, `quorate storage recover` makes one out of the logs, in an epoch of"
    " its own"
)


class StorageError(Exception):
    """The directory cannot be used as it is; the message says where and what to do about it."""


class DirectoryInUseError(StorageError):
    """Another process holds the lock of the directory."""


class DamagedLogError(StorageError):
    """A batch that was whole once does not check any more, found while serving it (rule 17)."""


class DamagedSnapshotError(StorageError):
    """A snapshot file does not check: a CRC, its header, its footer or the order of its batches."""


class MisplacedCutError(ValueError):
    """The log cannot be cut at that offset, where no batch begins; nothing has been changed."""
