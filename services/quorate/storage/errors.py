"""What storage refuses, in words that name the file, the place in it and the way out."""

from __future__ import annotations


class StorageError(Exception):
    """The directory cannot be used as it is; the message says where and what to do about it."""


class DamagedLogError(StorageError):
    """A batch that was whole once does not check any more, found while serving it (rule 17)."""


class DamagedSnapshotError(StorageError):
    """A snapshot file does not check: a CRC, its header, its footer or the order of its batches."""
