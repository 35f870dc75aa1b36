from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

import pytest

from quorate.sim.engine.disk import SECTOR_BYTES, SimulatedDisk, Survival

if TYPE_CHECKING:
    from quorate.storage.file_system import FileSystem


def a_disk_with(content: bytes) -> SimulatedDisk:
    """A disk whose file /d/f holds `content`, safe on the platter."""
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    disk.open("/d/f", create=True).write_at(0, content)
    disk.settle()
    return disk


def lose(disk: SimulatedDisk, survival: Survival, seed: int = 0) -> None:
    disk.lose_power(random.Random(seed), survival)


def test_it_stands_behind_the_port_of_storage() -> None:
    port: FileSystem = SimulatedDisk()
    port.make_dirs("/d/e")
    assert port.exists("/d/e")
    assert port.list_dir("/d") == ["e"]


def test_a_write_is_read_back_but_lost_with_the_power() -> None:
    disk = a_disk_with(b"old")
    disk.open("/d/f").write_at(0, b"new and longer")
    assert disk.read("/d/f") == b"new and longer"
    lose(disk, Survival.NOTHING)
    assert disk.read("/d/f") == b"old"


def test_a_flushed_write_survives() -> None:
    disk = a_disk_with(b"old")
    file = disk.open("/d/f")
    file.write_at(3, b"est")
    file.fdatasync()
    lose(disk, Survival.NOTHING)
    assert disk.read("/d/f") == b"oldest"


def test_a_flush_promises_nothing_that_came_after_it_began() -> None:
    disk = a_disk_with(b"")
    file = disk.open("/d/f")
    file.write_at(0, b"first")
    began = disk.sequence
    file.write_at(5, b"second")
    disk.unpromised = (began, disk.sequence)
    file.fdatasync()
    lose(disk, Survival.NOTHING)
    assert disk.read("/d/f") == b"first"


def test_a_cut_is_lost_with_the_power_too() -> None:
    disk = a_disk_with(b"abcdef")
    disk.open("/d/f").truncate(2)
    assert disk.read("/d/f") == b"ab"
    lose(disk, Survival.NOTHING)
    assert disk.read("/d/f") == b"abcdef"


def test_a_prefix_of_the_writes_survives_the_last_one_torn() -> None:
    seen = set()
    for seed in range(200):
        disk = a_disk_with(b"")
        file = disk.open("/d/f")
        file.write_at(0, b"abc")
        file.write_at(3, b"def")
        lose(disk, Survival.PREFIX, seed)
        seen.add(disk.read("/d/f"))
    assert seen == {b"", b"a", b"ab", b"abc", b"abcd", b"abcde", b"abcdef"}


def test_sectors_survive_one_by_one() -> None:
    seen = set()
    for seed in range(100):
        disk = a_disk_with(b"")
        disk.open("/d/f").write_at(0, b"x" * SECTOR_BYTES + b"y" * SECTOR_BYTES)
        lose(disk, Survival.SECTORS, seed)
        content = disk.read("/d/f")
        seen.add((content[:1], content[SECTOR_BYTES : SECTOR_BYTES + 1]))
    assert seen == {(b"", b""), (b"x", b""), (b"\0", b"y"), (b"x", b"y")}


def test_a_new_name_needs_its_directory_flushed() -> None:
    disk = a_disk_with(b"old")
    disk.open("/d/g", create=True).fdatasync()
    disk.rename("/d/f", "/d/h")
    lose(disk, Survival.NOTHING)
    assert disk.list_dir("/d") == ["f"]
    disk.rename("/d/f", "/d/h")
    disk.sync_dir("/d")
    lose(disk, Survival.NOTHING)
    assert disk.list_dir("/d") == ["h"]


def test_a_removed_file_comes_back_unless_its_directory_is_flushed() -> None:
    disk = a_disk_with(b"old")
    disk.remove("/d/f")
    assert not disk.exists("/d/f")
    lose(disk, Survival.NOTHING)
    assert disk.read("/d/f") == b"old"


def test_the_first_unsafe_write_is_known_by_its_sequence() -> None:
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    assert disk.first_unsafe("/d", ".log") is None
    file = disk.open("/d/0.log", create=True)
    created = disk.sequence
    file.write_at(0, b"x")
    assert disk.first_unsafe("/d", ".log") == created
    file.fdatasync()
    assert disk.first_unsafe("/d", ".log") == created
    disk.sync_dir("/d")
    assert disk.first_unsafe("/d", ".log") is None


def test_rot_shows_in_the_cache_and_on_the_platter() -> None:
    disk = a_disk_with(b"\x00\x00")
    disk.rot("/d/f", 1, 0x80)
    assert disk.read("/d/f") == b"\x00\x80"
    lose(disk, Survival.NOTHING)
    assert disk.read("/d/f") == b"\x00\x80"


def test_every_call_can_be_made_to_fail() -> None:
    def fail(operation: str, path: str) -> None:
        raise OSError(errno.EIO, operation, path)

    disk = a_disk_with(b"old")
    file = disk.open("/d/f")
    disk.hook = fail
    with pytest.raises(OSError, match="fdatasync"):
        file.fdatasync()
    with pytest.raises(OSError, match="read"):
        disk.read("/d/f")


def test_what_is_missing_is_named() -> None:
    disk = SimulatedDisk()
    with pytest.raises(FileNotFoundError, match="no such directory: '/d'"):
        disk.open("/d/f")
    disk.make_dirs("/d")
    for call in (disk.read, disk.remove, disk.open):
        with pytest.raises(FileNotFoundError, match="/d/f"):
            call("/d/f")


def test_rot_is_known_until_it_is_written_over_or_goes_with_its_file() -> None:
    disk = a_disk_with(b"0123456789")
    disk.rot("/d/f", 2, 1)
    disk.rot("/d/f", 8, 1)
    assert disk.rotten_files("/d") == ["f"]
    file = disk.open("/d/f")
    file.write_at(1, b"12")
    assert disk.rotten_files("/d") == ["f"]
    file.truncate(8)
    assert disk.rotten_files("/d") == []
    disk.rot("/d/f", 0, 1)
    disk.remove("/d/f")
    assert disk.rotten_files("/d") == []


def test_a_file_is_safe_when_its_bytes_and_its_name_are() -> None:
    disk = a_disk_with(b"old")
    assert disk.is_safe("/d/f")
    file = disk.open("/d/f")
    file.write_at(0, b"new")
    assert not disk.is_safe("/d/f")
    file.fdatasync()
    assert disk.is_safe("/d/f")
    disk.rename("/d/f", "/d/g")
    assert not disk.is_safe("/d/g")
    disk.sync_dir("/d")
    assert disk.is_safe("/d/g")
    assert not disk.is_safe("/d/f")


def test_a_file_that_is_put_back_is_another_and_safe() -> None:
    disk = a_disk_with(b"new")
    open_before = disk.open("/d/f")
    disk.put_back("/d/f", b"old")
    open_before.write_at(0, b"lost")
    assert (disk.read("/d/f"), disk.is_safe("/d/f")) == (b"old", True)
    disk.put_back("/d/f", None)
    lose(disk, Survival.EVERYTHING)
    assert not disk.exists("/d/f")
