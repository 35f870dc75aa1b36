"""Lets tests of several processes share the cluster until one of them damages what all stand on."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class ClusterLock:
    """A lock in a file that all processes of a run open. A context manager, shared when entered."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def __enter__(self) -> Self:
        fcntl.flock(self._file, fcntl.LOCK_SH)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        # Closing the file releases it.
        self._file.close()

    def acquire_alone(self) -> None:
        """Wait until no other test runs, and keep all others waiting until this one ends.

        The share is given up first, so that two tests which ask for this do not wait for each
        other. One of them may have damaged the cluster before this returns.
        """
        fcntl.flock(self._file, fcntl.LOCK_UN)
        fcntl.flock(self._file, fcntl.LOCK_EX)
