"""File-descriptor limit and free disk space, with the warnings for each."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from typing import Final

from quorate.storage.reserved_descriptors import reserve_descriptors

DESCRIPTORS_MIN: Final = 1024
# A warning comes this many times before the threshold at which leadership is resigned.
_WARNING_FACTOR: Final = 4


def check_descriptors() -> str | None:
    """Raise the limit, up to the files' reserve; return a warning if even that is too low."""
    return descriptor_warning(reserve_descriptors())


def descriptor_warning(limit: int) -> str | None:
    """Return a warning about a low limit on file descriptors, or None; -1 means unlimited."""
    if limit == resource.RLIM_INFINITY or limit >= DESCRIPTORS_MIN:
        return None
    return (
        f"the process may open {limit} files, at least {DESCRIPTORS_MIN} are advisable: raise the "
        "limit (ulimit -n, LimitNOFILE)"
    )


def access_warning(directory: str) -> str | None:
    """Return a warning if other users may enter the directory, whose log contains passwords.

    A group that new files inherit from the directory (setgid) is a choice: Kubernetes gives volumes
    to a group that way (`fsGroup`).
    """
    try:
        mode = os.stat(directory).st_mode
    except OSError:
        return None
    is_for_group = mode & stat.S_IRWXG and not mode & stat.S_ISGID
    if not (mode & stat.S_IRWXO or is_for_group):
        return None
    return (
        f"metadata.log.dir {directory} has mode {stat.S_IMODE(mode):04o}: other users of this "
        f"machine may read passwords in the log: chmod 700 {directory}"
    )


class DiskSpace:
    """Free space on the disk of the log, and the minimum that a leader needs."""

    def __init__(self, directory: str, free_bytes_min: int) -> None:
        self._directory = directory
        self._minimum = free_bytes_min
        self.free_bytes = 0
        self.is_exhausted = False

    def measure(self) -> str | None:
        """Measure; return a warning if space is low. Raises OSError if the disk is gone."""
        return self.evaluate(shutil.disk_usage(self._directory).free)

    def evaluate(self, free_bytes: int) -> str | None:
        """Note `free_bytes`, and return a warning if it is low."""
        self.free_bytes = free_bytes
        self.is_exhausted = free_bytes < self._minimum
        if free_bytes >= self._minimum * _WARNING_FACTOR:
            return None
        consequence = "too little to lead" if self.is_exhausted else "which is getting low"
        return (
            f"{self._directory} has {free_bytes} bytes free, {consequence}: a leader with less "
            f"than {self._minimum} (metadata.log.free.bytes.min) hands over. Free space or enlarge "
            "the disk"
        )
