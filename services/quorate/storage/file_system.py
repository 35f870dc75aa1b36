"""FileSystem interface, its OS implementation, and atomic and durable write helpers.

Every disk call goes through it, so that the simulator can make each one fail. A call that raises
OSError means that the disk failed; after a failed `fdatasync` or `sync_dir` nothing is retried
(rule `disk_fail_stop`). Paths are strings with slashes. A rename replaces its target. Entries of a
directory are durable only after `sync_dir`, bytes only after `fdatasync`.
"""

from __future__ import annotations

import errno
import os
from typing import Final, Protocol

from quorate.settings.regular_files import NotRegularFileError, open_regular, read_regular
from quorate.storage.errors import NO_FLUSH, StorageError, named, naming
from quorate.storage.layout import TEMPORARY_SUFFIX
from quorate.storage.reserved_descriptors import open_descriptor, with_reserved_descriptor

COPY_BYTES: Final = 1024 * 1024
# The log holds passwords of clients and brokers in plain text, as Kafka's does.
_PRIVATE_MODE: Final = 0o700
_PARENT_MODE: Final = 0o777
_CLOSED: Final = -1


class File(Protocol):
    """An open file; positions and sizes are bytes."""

    def write_at(self, position: int, data: bytes) -> None:
        """Write all of `data`; the file grows as needed."""
        ...

    def read_at(self, position: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at the file's end."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def fdatasync(self) -> None:
        """Return when everything written before is on the disk."""
        ...

    def is_at(self, path: str) -> bool:
        """True if `path` names this file, by device and inode."""
        ...

    def close(self) -> None: ...


class FileSystem(Protocol):
    """A file system: the operating system's (`OsFileSystem`) or the simulator's disk."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. Raises FileNotFoundError unless `create`."""
        ...

    def read(self, path: str) -> bytes:
        """Read a whole small file. Raises StorageError if it is not a regular file."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """List the names in the directory, sorted."""
        ...

    def exists(self, path: str) -> bool: ...

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def make_dirs(self, path: str) -> None:
        """Create the directory, for this user only, and its parents; durable on return."""
        ...

    def sync_dir(self, path: str) -> None: ...

    def make_read_only(self, path: str) -> None:
        """Set mode 0400, as Kafka does for its snapshots."""
        ...


class OsFile:
    """A file of the operating system. Errors name its path."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path

    def write_at(self, position: int, data: bytes) -> None:
        try:
            written = os.pwrite(self._descriptor, data, position)
            while written < len(data):
                rest = memoryview(data)[written:]
                written += os.pwrite(self._descriptor, rest, position + written)
        except OSError as error:
            raise named(error, self._path) from None

    def read_at(self, position: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, position)
            while 0 < len(data) < size:
                more = os.pread(self._descriptor, size - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise named(error, self._path) from None
        return data

    def size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise named(error, self._path) from None

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise named(error, self._path) from None

    def fdatasync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise named(error, self._path, NO_FLUSH) from None

    def is_at(self, path: str) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise named(error, self._path) from None

    def close(self) -> None:
        # The descriptor may be reused immediately: a late call must not reach the other file.
        descriptor, self._descriptor = self._descriptor, _CLOSED
        try:
            os.close(descriptor)
        except OSError as error:
            raise named(error, self._path) from None


class OsFileSystem:
    """The operating system's files."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR
        try:
            return OsFile(_open(path, flags | os.O_CREAT if create else flags), path)
        except OSError as error:
            # Snapshots have mode 0400: they are readable, and never written again. A surviving disk
            # may be mounted read-only for comparison.
            if not isinstance(error, PermissionError) and error.errno != errno.EROFS:
                raise
        except NotRegularFileError as error:
            raise _unfit(path, error) from error
        return OsFile(_open(path, os.O_RDONLY), path)

    def read(self, path: str) -> bytes:
        try:
            with naming(path):
                return with_reserved_descriptor(lambda: read_regular(path))
        except NotRegularFileError as error:
            raise _unfit(path, error) from error

    def list_dir(self, path: str) -> list[str]:
        try:
            return sorted(with_reserved_descriptor(lambda: os.listdir(path)))
        except NotADirectoryError as error:
            raise _unfit(path, "it is no directory") from error

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except (IsADirectoryError, PermissionError) as error:
            if os.path.isdir(path):
                raise _unfit(path, "it is a directory") from error
            raise

    def make_dirs(self, path: str) -> None:
        missing = []
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for directory in reversed(missing):
            try:
                # The last one is private; other users may read its parents.
                os.mkdir(directory, _PRIVATE_MODE if directory == missing[0] else _PARENT_MODE)
            except FileExistsError as error:
                raise _unfit(directory, "it is no directory") from error
            self.sync_dir(os.path.dirname(directory) or ".")

    def sync_dir(self, path: str) -> None:
        descriptor = open_descriptor(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise named(error, path, NO_FLUSH) from None
        finally:
            os.close(descriptor)

    def make_read_only(self, path: str) -> None:
        os.chmod(path, 0o400)


def _open(path: str, flags: int) -> int:
    return with_reserved_descriptor(lambda: open_regular(path, flags))


def _unfit(path: str, why: object) -> StorageError:
    return StorageError(
        f"{path}: {why}. Move it away; if this directory has been in use, restore what belongs "
        "there from a backup"
    )


def write_atomically(fs: FileSystem, path: str, data: bytes, *, by: str = "") -> None:
    """Replace `path` by `data`: after a crash at any point it holds the old bytes or the new.

    Durable on return: the temporary file is flushed before the rename, the directory after it. If
    two threads may replace one file, `by` keeps their temporary files apart.
    """
    temporary = f"{path}{by}{TEMPORARY_SUFFIX}"
    write_durably(fs, temporary, data)
    fs.rename(temporary, path)
    fs.sync_dir(parent(path))


def copy_durably(fs: FileSystem, source: File, path: str, size_bytes: int) -> None:
    """Copy the first `size_bytes` of a file to `path` in small pieces, and flush the copy."""
    file = fs.open(path, create=True)
    try:
        file.truncate(0)
        for position in range(0, size_bytes, COPY_BYTES):
            data = source.read_at(position, min(COPY_BYTES, size_bytes - position))
            file.write_at(position, data)
        file.fdatasync()
    finally:
        file.close()


def write_durably(fs: FileSystem, path: str, data: bytes) -> None:
    """Write a file with exactly these bytes and flush it; its entry is not yet durable."""
    file = fs.open(path, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        file.fdatasync()
    finally:
        file.close()


def remove_durably(fs: FileSystem, path: str) -> None:
    """Remove a file if it exists; it does not reappear after a power failure."""
    if fs.exists(path):
        fs.remove(path)
        fs.sync_dir(parent(path))


def parent(path: str) -> str:
    """Return the directory that holds `path`."""
    head, _, _ = path.rpartition("/")
    return head or ("/" if path.startswith("/") else ".")
