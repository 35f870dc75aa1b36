"""Exclusive lock on a metadata log directory, compatible with Kafka's; `.lock` holds the pid.

It combines two kinds of locks, which the kernel keeps apart. Kafka uses a record lock (fcntl), so
it excludes an Apache Kafka server. But record locks do not keep one process from opening a
directory twice; `flock` does.
"""

from __future__ import annotations

import fcntl
import os
from typing import Self

from quorate.settings.regular_files import NotRegularFileError, open_regular
from quorate.storage.errors import NO_LOCKS, DirectoryInUseError, StorageError, named
from quorate.storage.layout import LOCK

_PID_BYTES_MAX = 32


class DirectoryLock:
    """The lock on a directory; the kernel releases it when the process ends.

    `named_by` is the setting or option that names the directory, for the errors of `acquire`.
    """

    def __init__(self, directory: str, named_by: str = "metadata.log.dir") -> None:
        self.path = f"{directory}/{LOCK}"
        self._named_by = named_by
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises DirectoryInUseError that names the process that holds it."""
        descriptor = self._open(os.O_RDWR | os.O_CREAT)
        self._lock(descriptor, fcntl.LOCK_EX)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(descriptor)
            raise named(error, self.path) from None
        self._descriptor = descriptor

    def check(self) -> None:
        """Raise DirectoryInUseError naming the process that holds the lock; change nothing."""
        try:
            descriptor = self._open(os.O_RDONLY)
        except FileNotFoundError:
            return
        self._lock(descriptor, fcntl.LOCK_SH)
        os.close(descriptor)

    def _open(self, flags: int) -> int:
        try:
            # Any user who could open the file could lock it, and so keep the controller from
            # starting.
            return open_regular(self.path, flags, 0o600)
        except NotRegularFileError as error:
            raise StorageError(f"{self.path}: {error}. Remove it: it is made anew") from error

    def _lock(self, descriptor: int, kind: int) -> None:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            fcntl.lockf(descriptor, kind | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            owner = os.pread(descriptor, _PID_BYTES_MAX, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise DirectoryInUseError(
                f"{self.path} is held by {f'process {owner}' if owner else 'another program'}: a "
                f"directory belongs to one process. Stop that one, or use another {self._named_by}"
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise named(error, self.path, NO_LOCKS) from None

    def release(self) -> None:
        """Release the lock. The file stays, as Kafka's does: a removal would let two in."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
