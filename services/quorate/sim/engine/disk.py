"""Simulated disk that loses unflushed writes on power loss.

It has the interface of the operating system's files. Every file has two contents: the page cache,
which the process reads, and the platter. A write goes to the cache; `fdatasync` copies it to the
platter. Directory entries work the same way: a create, rename or remove waits until `sync_dir`. A
killed process keeps both contents. A power loss keeps the platter and a random part of the
unflushed writes: a prefix, or some sectors.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from quorate.raft.api import Random

T = TypeVar("T")

SECTOR_BYTES: Final = 512
Hook: TypeAlias = Callable[[str, str], None]


class Survival(Enum):
    """The unflushed writes that survive a power loss."""

    NOTHING = "nothing"
    EVERYTHING = "everything"
    PREFIX = "a prefix, the last write torn"
    SECTORS = "some of the sectors"


@dataclass(slots=True)
class PendingWrite:
    """A write not yet on the platter; without `data` the file is resized to `position`."""

    sequence: int
    position: int
    data: bytes | None


@dataclass(slots=True)
class Inode:
    """One file: the cached content, the durable content, and the writes between them."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[PendingWrite] = field(default_factory=list)
    # Positions of flipped bits that no write has replaced since.
    rotten: dict[int, None] = field(default_factory=dict)


@dataclass(slots=True)
class PendingEntry:
    """Directory changes that reach the platter together: a rename changes two names."""

    sequence: int
    names: tuple[tuple[str, Inode | None], ...]


@dataclass(slots=True)
class SimulatedDirectory:
    entries: dict[str, Inode] = field(default_factory=dict)
    durable: dict[str, Inode] = field(default_factory=dict)
    pending: list[PendingEntry] = field(default_factory=list)


class SimulatedDisk:
    """The disk of one node; it outlives the processes that use it.

    `hook` is called with (operation, path) before each call and may raise: OSError for a disk that
    fails, a simulated crash for a process that dies between two calls. `unpromised` holds the
    sequences (above the first, up to the second) of the writes that came while a flush was in
    progress: that flush does not cover them.
    """

    def __init__(self, hook: Hook | None = None) -> None:
        self.hook: Hook = hook or _nothing
        self.unpromised = (0, 0)
        self.sequence = 0
        self.fsyncs = 0
        self._has_rotted = False
        self._directories: dict[str, SimulatedDirectory] = {"/": SimulatedDirectory()}

    # --- the interface --------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        self.hook("open", path)
        directory, name = self._locate(path)
        inode = directory.entries.get(name)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            inode = Inode()
            self._change(directory, (name, inode))
        return SimulatedFile(self, inode, path)

    def read(self, path: str) -> bytes:
        self.hook("read", path)
        return bytes(self._inode(path).data)

    def list_dir(self, path: str) -> list[str]:
        self.hook("list_dir", path)
        directory = self._directory(path)
        prefix = path.rstrip("/") + "/"
        below = [d[len(prefix) :] for d in self._directories if d.startswith(prefix) and d != "/"]
        return sorted([*directory.entries, *(name for name in below if "/" not in name)])

    def exists(self, path: str) -> bool:
        self.hook("exists", path)
        if path in self._directories:
            return True
        parent, _, name = path.rpartition("/")
        directory = self._directories.get(parent or "/")
        return directory is not None and name in directory.entries

    def rename(self, source: str, target: str) -> None:
        self.hook("rename", source)
        directory, old = self._locate(source)
        other, new = self._locate(target)
        if other is not directory:
            raise OSError(errno.EXDEV, "the simulated disk renames within one directory", source)
        self._change(directory, (old, None), (new, self._inode(source)))

    def remove(self, path: str) -> None:
        self.hook("remove", path)
        self._inode(path)
        directory, name = self._locate(path)
        self._change(directory, (name, None))

    def make_dirs(self, path: str) -> None:
        """Create directories; unlike their entries, they are durable immediately."""
        self.hook("make_dirs", path)
        parts = [part for part in path.split("/") if part]
        for depth in range(1, len(parts) + 1):
            self._directories.setdefault("/" + "/".join(parts[:depth]), SimulatedDirectory())

    def sync_dir(self, path: str) -> None:
        self.hook("sync_dir", path)
        directory = self._directory(path)
        directory.durable = dict(directory.entries)
        directory.pending.clear()

    def make_read_only(self, path: str) -> None:
        self.hook("make_read_only", path)
        self._inode(path)

    # --- disk faults ------------------------------------------------------------------------------

    def lose_power(self, random: Random, survival: Survival) -> None:
        """Keep the platter and the unflushed writes that `survival` selects; none stay pending."""
        for path in sorted(self._directories):
            directory = self._directories[path]
            seen = [*directory.entries.values(), *directory.durable.values()]
            entries = directory.durable
            for change in _surviving_entries(directory.pending, random, survival):
                _apply_entry(entries, change)
            for inode in seen:
                _lose_power(inode, random, survival)
            directory.durable = entries
            directory.entries = dict(entries)
            directory.pending = []

    def settle(self) -> None:
        """Flush everything, as before the simulation of a node starts."""
        for path in sorted(self._directories):
            directory = self._directories[path]
            for inode in directory.entries.values():
                inode.durable[:] = inode.data
                inode.pending.clear()
            directory.durable = dict(directory.entries)
            directory.pending.clear()

    def rot(self, path: str, position: int, mask: int) -> None:
        """Flip the bits of `mask` in one byte, in the cache and on the platter."""
        inode = self._inode(path)
        inode.data[position] ^= mask
        if position < len(inode.durable):
            inode.durable[position] ^= mask
        inode.rotten[position] = None
        self._has_rotted = True

    def wipe(self) -> None:
        """Replace the disk by a new, empty one."""
        self._directories = {"/": SimulatedDirectory()}
        self._has_rotted = False

    def aside(self, work: Callable[[], T]) -> T:
        """Run `work` on the disk from outside, without hook, and return its result."""
        hook, self.hook = self.hook, _nothing
        try:
            return work()
        finally:
            self.hook = hook

    def on_platter(self, path: str) -> bytes:
        """The contents of a file that survive any power loss; read from outside, without hook."""
        return bytes(self._inode(path).durable)

    def files(self, path: str) -> dict[str, int]:
        """The files of a directory and their sizes, by name; read from outside, without hook."""
        entries = self._directories[path].entries if path in self._directories else {}
        return {name: len(entries[name].data) for name in sorted(entries)}

    def rotten_files(self, path: str) -> list[str]:
        """The files of a directory with flipped bits; read from outside."""
        if not self._has_rotted or path not in self._directories:
            return []
        entries = self._directories[path].entries
        return [name for name in sorted(entries) if entries[name].rotten]

    def is_safe(self, path: str) -> bool:
        """True if a power loss leaves this file as it reads now, under this name."""
        directory, name = self._locate(path)
        inode = directory.entries.get(name)
        return inode is not None and directory.durable.get(name) is inode and not inode.pending

    def put_back(self, path: str, data: bytes | None) -> None:
        """Replace a file as an operator does, after a flush; None removes it."""
        self.settle()
        directory, name = self._locate(path)
        directory.entries.pop(name, None)
        if data is not None:
            directory.entries[name] = Inode(bytearray(data), bytearray(data))
        directory.durable = dict(directory.entries)

    def holds(self, path: str, inode: Inode) -> bool:
        """True if `path` names that file; read from outside, without hook."""
        parent, _, name = path.rpartition("/")
        directory = self._directories.get(parent or "/")
        return directory is not None and directory.entries.get(name) is inode

    def first_unsafe(self, path: str, suffix: str) -> int | None:
        """The sequence of the oldest write to a file of that suffix that a power loss may lose."""
        directory = self._directories.get(path)
        if directory is None:
            return None
        waits: list[int] = []
        unlinked = {name: c.sequence for c in directory.pending for name, node in c.names if node}
        for name, inode in directory.entries.items():
            if not name.endswith(suffix):
                continue
            if inode.pending:
                waits.append(inode.pending[0].sequence)
            if name in unlinked and directory.durable.get(name) is not inode:
                waits.append(unlinked[name])
        return min(waits, default=None)

    # --- inside -----------------------------------------------------------------------------------

    def next_sequence(self) -> int:
        self.sequence += 1
        return self.sequence

    def _directory(self, path: str) -> SimulatedDirectory:
        directory = self._directories.get(path.rstrip("/") or "/")
        if directory is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return directory

    def _locate(self, path: str) -> tuple[SimulatedDirectory, str]:
        parent, _, name = path.rpartition("/")
        return self._directory(parent or "/"), name

    def _inode(self, path: str) -> Inode:
        directory, name = self._locate(path)
        inode = directory.entries.get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return inode

    def _change(self, directory: SimulatedDirectory, *names: tuple[str, Inode | None]) -> None:
        change = PendingEntry(self.next_sequence(), names)
        _apply_entry(directory.entries, change)
        directory.pending.append(change)


class SimulatedFile:
    """An open file of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, inode: Inode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path

    def write_at(self, position: int, data: bytes) -> None:
        self._disk.hook("write_at", self._path)
        write = PendingWrite(self._disk.next_sequence(), position, bytes(data))
        self._write(write)

    def read_at(self, position: int, size: int) -> bytes:
        self._disk.hook("read_at", self._path)
        return bytes(self._inode.data[position : position + size])

    def size(self) -> int:
        return len(self._inode.data)

    def truncate(self, size: int) -> None:
        self._disk.hook("truncate", self._path)
        self._write(PendingWrite(self._disk.next_sequence(), size, None))

    def _write(self, write: PendingWrite) -> None:
        inode = self._inode
        _apply_write(inode.data, write)
        inode.pending.append(write)
        if inode.rotten:
            end = len(inode.data) if write.data is None else write.position + len(write.data)
            kept = [at for at in inode.rotten if not write.position <= at < end]
            inode.rotten = {at: None for at in kept if at < len(inode.data)}

    def fdatasync(self) -> None:
        self._disk.hook("fdatasync", self._path)
        self._disk.fsyncs += 1
        after, until = self._disk.unpromised
        pending = self._inode.pending
        count = 0
        for write in pending:
            if after < write.sequence <= until:
                break
            _apply_write(self._inode.durable, write)
            count += 1
        del pending[:count]

    def is_at(self, path: str) -> bool:
        return self._disk.holds(path, self._inode)

    def close(self) -> None:
        """Closing flushes nothing."""


def _nothing(operation: str, path: str) -> None:
    del operation, path


def _apply_entry(entries: dict[str, Inode], change: PendingEntry) -> None:
    for name, inode in change.names:
        if inode is None:
            entries.pop(name, None)
        else:
            entries[name] = inode


def _apply_write(content: bytearray, write: PendingWrite) -> None:
    if write.data is None:
        if write.position < len(content):
            del content[write.position :]
        else:
            content.extend(bytes(write.position - len(content)))
        return
    if write.position > len(content):
        content.extend(bytes(write.position - len(content)))
    content[write.position : write.position + len(write.data)] = write.data


def _surviving_entries(
    pending: list[PendingEntry], random: Random, survival: Survival
) -> list[PendingEntry]:
    """Directory changes survive in order, because file systems journal them."""
    if survival is Survival.NOTHING:
        return []
    if survival is Survival.EVERYTHING:
        return pending
    return pending[: int(random.random() * (len(pending) + 1))]


def _lose_power(inode: Inode, random: Random, survival: Survival) -> None:
    if inode.pending:
        match survival:
            case Survival.NOTHING:
                pass
            case Survival.EVERYTHING:
                inode.durable[:] = inode.data
            case Survival.PREFIX:
                _keep_prefix(inode, random)
            case Survival.SECTORS:
                _keep_sectors(inode, random)
        inode.pending = []
    inode.data[:] = inode.durable
    inode.rotten = {at: None for at in inode.rotten if at < len(inode.data)}


def _keep_prefix(inode: Inode, random: Random) -> None:
    kept = int(random.random() * (len(inode.pending) + 1))
    for write in inode.pending[:kept]:
        _apply_write(inode.durable, write)
    if kept < len(inode.pending):
        torn = inode.pending[kept]
        if torn.data:
            size = int(random.random() * len(torn.data))
            part = PendingWrite(torn.sequence, torn.position, torn.data[:size])
            _apply_write(inode.durable, part)


def _keep_sectors(inode: Inode, random: Random) -> None:
    """Keep each sector of each pending write independently, so that holes of zeros remain."""
    for write in inode.pending:
        if write.data is None:
            if random.random() < 0.5:
                _apply_write(inode.durable, write)
            continue
        start = 0
        while start < len(write.data):
            position = write.position + start
            end = start + SECTOR_BYTES - position % SECTOR_BYTES
            if random.random() < 0.5:
                part = PendingWrite(write.sequence, position, write.data[start:end])
                _apply_write(inode.durable, part)
            start = end
