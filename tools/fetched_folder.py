"""Folders that a third-party tool fills for our tests: completely, or not at all.

Source files define the contents of a folder. A stamp in the folder is their checksum: when a source
has changed, the folder is filled again.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Fetched:
    """One folder: `home` in the repository, or the path in the environment variable `variable`."""

    variable: str
    home: str
    tool: str
    needs: tuple[tuple[str, str], ...]
    """Programs that have to be on the PATH, each with the package that installs it."""
    timeout_s: float
    stamp: str

    def folder(self, environment: Mapping[str, str]) -> Path:
        """The folder of the files, which may not exist yet."""
        return Path(environment.get(self.variable) or ROOT / self.home).absolute()

    def is_complete(self, folder: Path, sources: Sequence[Path]) -> bool:
        """True if the folder holds what these files ask for."""
        stamp = folder / self.stamp
        return stamp.is_file() and stamp.read_text(encoding="utf-8") == stamp_of(sources)

    def fill(
        self,
        folder: Path,
        sources: Sequence[Path],
        command: Callable[[Path], Sequence[str]],
        *,
        cwd: Path | None = None,
    ) -> str | None:
        """Let the command fill a new folder, and replace `folder` by it.

        Returns None, or the reason for which it failed; `folder` is then unchanged.
        """
        for program, package in self.needs:
            if shutil.which(program) is None:
                return f"{program} is not on the PATH: install {package}"
        if folder.exists() and any(folder.iterdir()) and not (folder / self.stamp).exists():
            return f"{folder} holds something else: let {self.variable} name a folder of its own"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as scratch:
            fresh = Path(scratch) / "fresh"
            try:
                done = subprocess.run(
                    command(fresh),
                    cwd=cwd,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                    timeout=self.timeout_s,
                )
            except subprocess.TimeoutExpired:
                took = f"{self.tool} was not done after {self.timeout_s:.0f} s"
                return f"{took}: see whether its repository answers"
            if done.returncode != 0:
                return f"{self.tool} failed:\n{done.stdout}"
            (fresh / self.stamp).write_text(stamp_of(sources), encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
        return None


def stamp_of(sources: Sequence[Path]) -> str:
    """The stamp of a folder that was made from these files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
