"""Quarantines damaged files under names that nothing reads.

The files are kept for operators to inspect. What one recovery quarantines belongs together: its
generation number is in the names. A disk with progressing bit rot must not fill up with copies, so
only the newest few generations are kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.storage.file_system import parent
from quorate.storage.layout import DAMAGED_SUFFIX

if TYPE_CHECKING:
    from quorate.storage.file_system import FileSystem

QUARANTINES_KEPT: Final = 3
_NUMBERED: Final = re.compile(r".*\.([0-9]{1,9})" + re.escape(DAMAGED_SUFFIX))


class Quarantine:
    """One quarantine generation in one directory."""

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._number = 1 + max((_number(name) for name in self._copies()), default=0)

    def name(self, path: str) -> str:
        """The path for the copy of `path`: `.damaged` the first time, `.2.damaged` the next."""
        return f"{path}{DAMAGED_SUFFIX if self._number == 1 else self._later}"

    def move(self, path: str) -> str:
        """Rename a file to its quarantine name, durable on return; return that name."""
        target = self.name(path)
        self._fs.rename(path, target)
        self._fs.sync_dir(self._directory)
        return target

    def remove_old(self) -> None:
        """Remove the copies of all but the newest EPISODES_MAX generations."""
        copies = self._copies()
        kept = sorted({_number(name) for name in copies})[-QUARANTINES_KEPT:]
        for name in copies:
            if _number(name) not in kept:
                self._fs.remove(f"{self._directory}/{name}")

    @property
    def _later(self) -> str:
        return f".{self._number}{DAMAGED_SUFFIX}"

    def _copies(self) -> list[str]:
        return [n for n in self._fs.list_dir(self._directory) if n.endswith(DAMAGED_SUFFIX)]


def quarantine(fs: FileSystem, path: str) -> str:
    """Quarantine one damaged file as a generation of its own; return its new name."""
    episode = Quarantine(fs, parent(path))
    target = episode.move(path)
    episode.remove_old()
    return target


def _number(name: str) -> int:
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match else 1
