"""The memory of a damaged voter."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.messages import VotersAt
from quorate.records.ids import DirectoryId, NodeId, Offset, ReplicaKey
from quorate.records.voters import Voter, VoterSet
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.healing import HealingState, encode_healing, read_healing, write_healing

from .conftest import ALONE, DIRECTORY, LOG_DIR, THREE, Replica, at

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/data/healing"
END = at(18, 4)
META = f"{DIRECTORY}/meta.properties"
QUORUM_STATE = f"{LOG_DIR}/quorum-state"
KEYS = (*(v.key for v in THREE), ReplicaKey(NodeId(9)))


def logs(replica: Replica) -> list[str]:
    return [f"{LOG_DIR}/{name}" for name in replica.logs()]


@pytest.mark.parametrize(
    "healing_state",
    [
        HealingState(at(10, 2), KEYS),
        HealingState(abstains=True),
        HealingState(at(1, 1), (), abstains=True),
    ],
)
def test_what_is_remembered_is_durable(healing_state: HealingState) -> None:
    disk = Replica().disk
    write_healing(disk, PATH, healing_state)
    assert disk.first_unsafe("/data", "healing") is None
    assert read_healing(disk, PATH) == healing_state


def test_a_flipped_bit_changes_nothing_of_what_is_remembered() -> None:
    healing = HealingState(at(1018, 14), KEYS)
    disk, data = Replica().disk, encode_healing(healing)
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            write_atomically(disk, PATH, bytes(flipped))
            with suppress(StorageError):
                assert read_healing(disk, PATH) == healing


def test_a_file_of_an_earlier_release_has_no_checksum() -> None:
    disk, healing = Replica().disk, HealingState(at(10, 2), KEYS)
    fields = json.loads(encode_healing(healing))
    del fields["checksum"]
    write_atomically(disk, PATH, json.dumps(fields).encode())
    assert read_healing(disk, PATH) == healing


def test_the_file_goes_when_there_is_nothing_to_remember() -> None:
    disk = Replica().disk
    write_healing(disk, PATH, HealingState(at(10, 2), KEYS))
    write_healing(disk, PATH, HealingState())
    assert not disk.exists(PATH)
    assert read_healing(disk, PATH) == HealingState()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        encode_healing(HealingState(at(1, 1))).replace(b'"version": 1', b'"version": 2'),
        encode_healing(HealingState(at(1, 1))).replace(b'"offset": 1', b'"offset": "x"'),
    ],
)
def test_a_malformed_file_is_refused(data: bytes) -> None:
    disk = Replica().disk
    write_atomically(disk, PATH, data)
    with pytest.raises(StorageError, match=r"/data/healing: malformed.*restore it"):
        read_healing(disk, PATH)


# --- rule `damaged_voter_heals`: what heals, and for how long ----------------------------------


def test_a_healing_voter_stays_so_until_it_has_what_it_had() -> None:
    replica = Replica()
    replica.write_history()
    replica.flip(logs(replica)[1], 100)
    first = replica.open()
    assert first.state.end < END
    assert not replica.open().is_damaged
    replica.append(b"one", b"two")
    replica.flush()
    assert replica.open().state.remembered_end == END
    replica.begin_epoch(5)
    replica.flush()
    recovered = replica.open()
    assert (recovered.state.remembered_end, recovered.healing_state) == (None, HealingState())
    assert not replica.disk.exists(f"{DIRECTORY}/healing")


def test_damage_while_healing_is_healed_on(veteran: Replica) -> None:
    veteran.flip(logs(veteran)[2], 100)
    veteran.open()
    veteran.flip(logs(veteran)[0], 100)
    recovered = veteran.open()
    assert (recovered.state.end, recovered.state.remembered_end) == (at(0, 0), END)
    assert "00000000000000000000.log.2.damaged" in veteran.files()


def test_a_voter_that_was_alone_once_heals_if_it_is_not_any_more() -> None:
    replica = Replica(ALONE)
    replica.open()
    replica.begin_epoch(1)
    replica.append(b"before the second voter")
    replica.set_voters(THREE)
    replica.flush()
    replica.flip(logs(replica)[0], 100)
    recovered = replica.open()
    assert (recovered.state.end, recovered.state.remembered_end) == (at(0, 0), at(5, 1))
    assert replica.open().state.remembered_end == at(5, 1)


def test_an_observer_under_an_old_voters_id_heals() -> None:
    replica = Replica(None)
    other = VoterSet((Voter(ReplicaKey(NodeId(1), DirectoryId(b"\x09" * 16))),))
    replica.voters = other
    replica.open()
    replica.begin_epoch(1)
    replica.flush()
    replica.flip(logs(replica)[0], 100)
    assert replica.open().state.remembered_end == at(3, 1)


# --- rule `empty_log_abstains`: kraft.version 0 -------------------------------------------------

STATIC = VoterSet(tuple(Voter(ReplicaKey(NodeId(node_id))) for node_id in (1, 2, 3)))


@pytest.fixture
def make_static() -> Callable[[bool], Replica]:
    def make(is_first_bootstrap: bool) -> Replica:  # noqa: FBT001
        replica = Replica(None)
        replica.disk.remove(META)
        formatting = Formatting(
            meta=replica.meta, records=[], is_first_bootstrap=is_first_bootstrap
        )
        format_directory(replica.disk, DIRECTORY, formatting, timestamp_ms=1)
        replica.config = replace(replica.config, static_voters=STATIC)
        return replica

    return make


@pytest.mark.rule("empty_log_abstains")
def test_a_static_voter_that_came_up_empty_abstains_until_the_core_ends_it(
    make_static: Callable[[bool], Replica],
) -> None:
    replica = make_static(False)  # noqa: FBT003
    assert [replica.open().state.abstains for _ in range(2)] == [True, True]
    assert replica.open().state.voters == (VotersAt(Offset(-1), STATIC),)
    replica.begin_epoch(1)
    replica.flush()
    assert replica.open().state.abstains
    replica.store.end_abstention()
    assert not replica.disk.exists(f"{DIRECTORY}/healing")
    assert not replica.open().state.abstains


def test_a_lost_mark_of_abstention_is_missed(make_static: Callable[[bool], Replica]) -> None:
    replica = make_static(False)  # noqa: FBT003
    replica.open()
    replica.begin_epoch(1)
    replica.flush()
    replica.disk.remove(f"{DIRECTORY}/healing")
    with pytest.raises(StorageError, match="came up empty and abstains"):
        replica.open()


def test_abstention_and_a_remembered_end_go_one_by_one(
    make_static: Callable[[bool], Replica],
) -> None:
    replica = make_static(False)  # noqa: FBT003
    replica.open()
    replica.begin_epoch(1)
    replica.append(b"of an epoch")
    replica.flush()
    replica.flip(logs(replica)[0], 100)
    assert replica.open().healing_state.remembered_end is not None
    replica.store.end_healing()
    assert replica.open().healing_state == HealingState(abstains=True)
    replica.store.end_abstention()
    assert replica.open().healing_state == HealingState()


def test_a_marked_first_bootstrap_does_not_abstain(make_static: Callable[[bool], Replica]) -> None:
    replica = make_static(True)  # noqa: FBT003
    assert [replica.open().state.abstains for _ in range(2)] == [False, False]
    assert b'"currentVoters":[{"voterId":1}' in replica.disk.read(QUORUM_STATE)
    assert not replica.disk.exists(f"{DIRECTORY}/first-bootstrap")
