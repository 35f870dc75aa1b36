"""File system without per-write fsync; the whole tree is synced once at the end.

A generated log is useless before it is complete, so no part of it needs to survive a power loss.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quorate.storage.file_system import OsFileSystem

if TYPE_CHECKING:
    from quorate.storage.file_system import File, OsFile


class _UnsyncedFile:
    """An open file whose flushes do nothing."""

    def __init__(self, file: OsFile) -> None:
        self.write_at = file.write_at
        self.read_at = file.read_at
        self.size = file.size
        self.truncate = file.truncate
        self.is_at = file.is_at
        self.close = file.close

    def fdatasync(self) -> None:
        """Left to `sync_tree`."""


class UnsyncedFileSystem(OsFileSystem):
    """Files that are written without being flushed."""

    def open(self, path: str, *, create: bool = False) -> File:  # type: ignore[override]
        return _UnsyncedFile(super().open(path, create=create))

    def sync_dir(self, path: str) -> None:
        """Left to `sync_tree`."""


def sync_tree(root: str) -> None:
    """Flush every file and every directory below `root`, and its entry. Raises OSError."""
    for folder, _, names in os.walk(root):
        for path in (*(os.path.join(folder, name) for name in sorted(names)), folder):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    OsFileSystem().sync_dir(os.path.dirname(root) or ".")
