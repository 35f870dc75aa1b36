"""A small file system for each node, that can be filled and slowed, and a clock that can be wrong.

Filling is real: a tmpfs of fixed size and a balloon file that takes what is left of it. Slowness
and wrong clocks come from `shim.c`, preloaded: a delayed device needs a device mapper, throttling a
block device under the tmpfs, and a time namespace knows no wall clock; a shim needs a compiler, and
leaves the product's code without a switch for tests.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.chaos.network import NAMED, run

if TYPE_CHECKING:
    from quorate.cli.local_quorum import NodePlan

DISK_BYTES: Final = 160 << 20
CONTROL: Final = struct.Struct("=qqq")
CONTROL_VARIABLE: Final = "QUORATE_CHAOS_CONTROL"
SOURCE: Final = Path(__file__).with_name("shim.c")
BALLOON: Final = "balloon"


def compile_shim(directory: Path) -> Path:
    """The shared object to preload."""
    target = directory / "shim.so"
    flags = ("-O2", "-fPIC", "-shared", "-Wall", "-Werror")
    done = subprocess.run(
        ["gcc", *flags, "-o", str(target), str(SOURCE), "-ldl"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def sweep() -> None:
    """Unmount what test processes that were killed have left."""
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        source, target = line.split()[:2]
        if source.startswith(f"{NAMED}-") and not Path(f"/proc/{source.split('-')[1]}").exists():
            run("umount", "--lazy", target)


class SmallDisk:
    """A file system of fixed size, mounted at a directory that it makes; that takes root."""

    def __init__(self, target: Path, size_bytes: int) -> None:
        self._target = target
        target.mkdir(parents=True)
        options = f"size={size_bytes},mode=0700"
        source = f"{NAMED}-{os.getpid()}"
        run("mount", "-t", "tmpfs", "-o", options, source, str(target))

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Take all space but so much."""
        balloon = os.open(self._target / BALLOON, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            stats = os.statvfs(self._target)
            size = stats.f_bavail * stats.f_frsize - leave_bytes
            position = 0
            # The process may write at the same time, so the last pieces are small.
            while size > 0:
                try:
                    os.posix_fallocate(balloon, position, size)
                    position += size
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2
                if leave_bytes:
                    break
        finally:
            os.close(balloon)

    def drain(self) -> None:
        """Give the space back."""
        with suppress(FileNotFoundError):
            (self._target / BALLOON).unlink()

    def unmount(self) -> None:
        """Take it away with all that is on it."""
        run("umount", str(self._target))


class Disk(SmallDisk):
    """The metadata directory of one node as a mount of its own, with the controls of its shim."""

    def __init__(self, node: NodePlan, shim: Path) -> None:
        super().__init__(node.metadata_dir, DISK_BYTES)
        self._shim = shim
        self._control_path = node.directory / "control"
        self._control_path.write_bytes(bytes(mmap.PAGESIZE))
        with self._control_path.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._flush_delay_ns = self._skew_ns = 0
        self._hangs = False

    def environment(self) -> dict[str, str]:
        """The environment that makes a process of this node use the shim."""
        return {"LD_PRELOAD": str(self._shim), CONTROL_VARIABLE: str(self._control_path)}

    def _write(self) -> None:
        CONTROL.pack_into(self._control, 0, self._flush_delay_ns, self._skew_ns, int(self._hangs))

    def slow_down(self, flush_delay_ms: float) -> None:
        """Every flush takes so much longer; 0 for no longer than it does."""
        self._flush_delay_ns = int(flush_delay_ms * 1e6)
        self._write()

    def hang(self) -> None:
        """No flush returns until `release`."""
        self._hangs = True
        self._write()

    def release(self) -> None:
        """Let the waiting calls continue."""
        self._hangs = False
        self._write()

    def skew(self, seconds: float) -> None:
        """The wall clock of the node is that much ahead."""
        self._skew_ns = int(seconds * 1e9)
        self._write()

    def close(self, *, keep: Path | None) -> None:
        """Unmount, after a copy to `keep` if one is wanted for inspection."""
        self.drain()
        if keep is not None:
            shutil.copytree(self._target, keep)
        self._control.close()
        self.unmount()
