"""Tracks corrupted and restored files of a directory until recovery has read them.

It keeps the contents before, with which an operator repairs a directory that is refused; and it
knows what a start had to notice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quorate.sim.engine.disk import SimulatedDisk


class _Spoiled(NamedTuple):
    """The contents of a file before and after, until a process writes it; None: no file."""

    held: bytes | None
    holds: bytes | None


class FileTampering:
    """All that was done to the files of one disk since its last sound start."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        self._spoiled: dict[str, _Spoiled] = {}

    def content(self, path: str) -> bytes | None:
        """The contents of a file; None if it does not exist."""
        return self._disk.aside(partial(self._content, path))

    def _content(self, path: str) -> bytes | None:
        return self._disk.read(path) if self._disk.exists(path) else None

    def flip_bits(self, path: str, position: int, mask: int) -> None:
        """Bits flip, under a process or without."""
        held = self.content(path)
        self._disk.rot(path, position, mask)
        self._spoiled[path] = _Spoiled(held, self.content(path))

    def restore_stale(self, path: str, data: bytes | None) -> None:
        """Somebody restores a file while no process runs, None for removes it."""
        held = self.content(path)
        self._disk.put_back(path, data)
        self._spoiled[path] = _Spoiled(held, data)

    @property
    def paths(self) -> list[str]:
        """The files that are as they were left."""
        return [p for p, spoiled in self._spoiled.items() if self.content(p) == spoiled.holds]

    def repair(self, path: str) -> None:
        """The newest backup takes the place of a file."""
        self._disk.put_back(path, self._spoiled.pop(path).held)

    def remove(self, path: str) -> None:
        """A file is given up."""
        del self._spoiled[path]
        self._disk.put_back(path, None)

    def forget(self) -> None:
        """A process has started on what there is, or there is another disk."""
        self._spoiled.clear()
