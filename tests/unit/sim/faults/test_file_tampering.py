"""Earlier content of files that were corrupted or put back."""

from __future__ import annotations

import pytest

from quorate.sim.engine.disk import SimulatedDisk
from quorate.sim.faults.file_tampering import FileTampering
from quorate.storage.file_system import write_durably

PATH = "/file"


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    write_durably(disk, PATH, b"new")
    return disk


def test_what_rotted_can_be_mended(disk: SimulatedDisk) -> None:
    spoiling = FileTampering(disk)
    spoiling.flip_bits(PATH, 0, 1)
    assert spoiling.content(PATH) == b"oew"
    assert spoiling.paths == [PATH]
    spoiling.repair(PATH)
    assert spoiling.content(PATH) == b"new"
    assert not spoiling.paths


def test_what_was_put_back_can_be_mended_or_given_up(disk: SimulatedDisk) -> None:
    spoiling = FileTampering(disk)
    spoiling.restore_stale(PATH, None)
    assert spoiling.paths == [PATH]
    spoiling.repair(PATH)
    assert spoiling.content(PATH) == b"new"
    spoiling.restore_stale(PATH, b"old")
    spoiling.remove(PATH)
    assert spoiling.content(PATH) is None
    assert not spoiling.paths


def test_a_file_that_was_written_since_is_as_it_should_be(disk: SimulatedDisk) -> None:
    spoiling = FileTampering(disk)
    spoiling.restore_stale(PATH, b"old")
    write_durably(disk, PATH, b"newer")
    assert not spoiling.paths


def test_what_a_process_has_started_on_counts(disk: SimulatedDisk) -> None:
    spoiling = FileTampering(disk)
    spoiling.flip_bits(PATH, 0, 1)
    spoiling.forget()
    assert not spoiling.paths
