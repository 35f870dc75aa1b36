"""Directories without an id, as Kafka before 3.7 formatted them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.records.ids import DirectoryId
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.meta_properties import read_meta
from quorate.storage.recovery.recovery import examine

from .conftest import DIRECTORY, LOG_DIR, THREE, Replica

if TYPE_CHECKING:
    from quorate.records.voters import VoterSet

QUORUM_STATE = f"{LOG_DIR}/quorum-state"
META = f"{DIRECTORY}/meta.properties"
DRAWN = DirectoryId(b"\x07" * 16)
OTHER = DirectoryId(b"\x08" * 16)


def in_use(voters: VoterSet | None) -> Replica:
    """A directory that has been started once."""
    replica = Replica(voters=voters)
    replica.open()
    replica.save(1)
    return replica


def without_id(replica: Replica) -> None:
    """Take directory.id away, as Kafka before 3.7 never wrote it."""
    lines = replica.disk.read(META).splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(b"directory.id")]
    write_atomically(replica.disk, META, b"".join(kept))
    replica.config = replace(replica.config, new_directory_id=DRAWN)


def test_a_directory_without_an_id_gets_one_for_good() -> None:
    replica = Replica(voters=None)
    without_id(replica)
    recovered = replica.open()
    assert recovered.meta == replace(replica.meta, directory_id=DRAWN)
    assert any("had no directory.id" in finding for finding in recovered.findings)
    # The next start draws another one, which nothing asks for.
    replica.config = replace(replica.config, new_directory_id=OTHER)
    replica.lose_all_unflushed()
    again = replica.open()
    assert (again.meta, again.findings) == (recovered.meta, ())


@pytest.mark.parametrize("voters", [None, THREE])
def test_a_directory_whose_log_tells_its_id_keeps_it(voters: VoterSet | None) -> None:
    replica = in_use(voters)
    without_id(replica)
    assert replica.open().meta == replica.meta
    assert read_meta(replica.disk, META) == replica.meta


def test_a_directory_whose_first_voters_tell_its_id_keeps_it() -> None:
    replica = Replica()
    without_id(replica)
    assert replica.open().meta == replica.meta
    assert read_meta(replica.disk, META) == replica.meta


def test_an_id_comes_before_all_else_that_a_start_writes() -> None:
    replica = Replica(voters=None)
    without_id(replica)
    order: list[str] = []
    replica.disk.hook = lambda operation, path: order.append(f"{operation} {path}")
    replica.open()
    assert order.index(f"rename {META}.tmp") < order.index(f"rename {QUORUM_STATE}.tmp")


def test_a_directory_that_is_refused_gets_no_id() -> None:
    replica = in_use(THREE)
    replica.disk.remove(QUORUM_STATE)
    without_id(replica)
    before = replica.everything()
    with pytest.raises(StorageError, match=QUORUM_STATE):
        replica.open()
    assert replica.everything() == before


def test_an_examination_gives_no_id() -> None:
    replica = in_use(THREE)
    without_id(replica)
    before = replica.everything()
    assert examine(replica.disk, DIRECTORY, replica.config).meta == replica.meta
    assert replica.everything() == before
