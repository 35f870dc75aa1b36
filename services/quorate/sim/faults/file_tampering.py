"""Tracks corrupted and restored files of a directory until recovery has read them.

It keeps the previous contents, with which an operator repairs a refused directory, and it knows
which files a start had to notice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quorate.sim.engine.disk import SimulatedDisk


class _Spoiled(NamedTuple):
    """The contents of a file before and after the tampering; None if it did not exist."""

    held: bytes | None
    holds: bytes | None


class FileTampering:
    """The tampering with the files of one disk since its last valid start."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._spoiled: dict[str, _Spoiled] = {}

    def content(self, path: str) -> bytes | None:
        """The contents of a file; None if it does not exist."""
        return self._disk.aside(partial(self._content, path))

    def _content(self, path: str) -> bytes | None:
        return self._disk.read(path) if self._disk.exists(path) else None

    def flip_bits(self, path: str, position: int, mask: int) -> None:
        """Flip the bits of `mask` in one byte, with or without a running process."""
        held = self.content(path)
        self._disk.rot(path, position, mask)
        self._spoiled[path] = _Spoiled(held, self.content(path))

    def restore_stale(self, path: str, data: bytes | None) -> None:
        """Restore an older copy of a file while no process runs; None removes the file."""
        held = self.content(path)
        self._disk.put_back(path, data)
        self._spoiled[path] = _Spoiled(held, data)

    @property
    def paths(self) -> list[str]:
        """The tampered files that no process has written since."""
        return [p for p, spoiled in self._spoiled.items() if self.content(p) == spoiled.holds]

    def repair(self, path: str) -> None:
        """Repair a file: restore its contents from before the tampering."""
        self._disk.put_back(path, self._spoiled.pop(path).held)

    def remove(self, path: str) -> None:
        """Remove a tampered file."""
        del self._spoiled[path]
        self._disk.put_back(path, None)

    def forget(self) -> None:
        """Clear the record: a process has started with these files, or the disk was replaced."""
        self._spoiled.clear()
