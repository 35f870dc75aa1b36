"""The flushed-end file: two slots, the newer one that checks counts."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from quorate.records.ids import NodeId, ReplicaKey
from quorate.sim.engine.disk import Survival
from quorate.storage.flushed_end import (
    SLOT_BYTES,
    FlushedEnd,
    FlushedEndFile,
    decode_slot,
    encode_slot,
    newest_slot,
)

from .conftest import CLUSTER_ID, THREE, Replica, at, voter

PATH = "/data/flushed-end"
KEYS = tuple(v.key for v in THREE)
ENTRY = FlushedEnd(at(10, 2), 0xFEEDBEEF, KEYS, 3, CLUSTER_ID, voter(1).key.directory_id or b"")  # type: ignore[arg-type]


def entry(offset: int) -> FlushedEnd:
    return replace(ENTRY, end=at(offset, 2))


@pytest.mark.parametrize(
    "content",
    [
        ENTRY,
        replace(ENTRY, last_crc=None),
        replace(ENTRY, last_crc=0),
        replace(ENTRY, voters=(), voter_count=0),
        replace(ENTRY, voters=(ReplicaKey(NodeId(1)),), voter_count=1),
    ],
)
def test_a_slot_keeps_what_it_is_given(content: FlushedEnd) -> None:
    slot = encode_slot(7, content)
    assert len(slot) == SLOT_BYTES
    assert decode_slot(slot) == (7, content)


def test_a_large_set_is_counted_whole_but_not_listed_whole() -> None:
    many = tuple(ReplicaKey(NodeId(number)) for number in range(60))
    read = decode_slot(encode_slot(1, replace(ENTRY, voters=many, voter_count=60)))
    assert read is not None
    assert (read[1].voter_count, read[1].voters) == (60, many[: len(read[1].voters)])
    assert len(read[1].voters) > 15


def test_any_flipped_byte_spoils_a_slot() -> None:
    slot = encode_slot(7, ENTRY)
    for position in range(SLOT_BYTES):
        spoilt = bytearray(slot)
        spoilt[position] ^= 1
        assert decode_slot(bytes(spoilt)) is None


def test_a_missing_file_says_nothing() -> None:
    assert FlushedEndFile(Replica().disk, PATH).load() is None


def test_the_newest_slot_counts() -> None:
    disk = Replica().disk
    file = FlushedEndFile(disk, PATH)
    file.store(entry(1))
    for offset in (2, 3, 4):
        file.write(entry(offset))
        assert FlushedEndFile(disk, PATH).load() == entry(offset)
    file.close()


def test_a_torn_slot_leaves_the_one_before() -> None:
    replica = Replica()
    file = FlushedEndFile(replica.disk, PATH)
    file.store(entry(1))
    file.write(entry(2))
    file.write(entry(3))
    newest = newest_slot(replica.disk.read(PATH))
    assert newest is not None
    replica.flip(PATH, newest[0] + 100)
    reopened = FlushedEndFile(replica.disk, PATH)
    assert reopened.load() == entry(2)
    reopened.write(entry(4))
    assert FlushedEndFile(replica.disk, PATH).load() == entry(4)


@pytest.mark.parametrize("survival", list(Survival))
def test_what_is_stored_never_comes_back_larger(survival: Survival) -> None:
    for seed in range(20):
        replica = Replica()
        file = FlushedEndFile(replica.disk, PATH)
        file.store(entry(1))
        file.write(entry(90))
        file.store(entry(50))
        file.write(entry(51))
        file.write(entry(52))
        replica.lose_power(survival, seed)
        found = FlushedEndFile(replica.disk, PATH).load()
        assert found is not None
        assert found.end.offset in (50, 51, 52)


def test_a_power_cut_takes_nothing_that_was_synced() -> None:
    replica = Replica()
    file = FlushedEndFile(replica.disk, PATH)
    file.sync()
    file.store(entry(1))
    file.write(entry(2))
    file.sync()
    file.write(entry(3))
    replica.lose_all_unflushed()
    assert FlushedEndFile(replica.disk, PATH).load() == entry(2)


def test_no_two_slots_share_a_block() -> None:
    replica = Replica()
    file = FlushedEndFile(replica.disk, PATH)
    file.store(entry(1))
    file.write(entry(2))
    for block in range(0, len(replica.disk.read(PATH)), 4096):
        rotten = copy.deepcopy(replica.disk)
        rotten.open(PATH).write_at(block, b"\xff" * 4096)
        found = FlushedEndFile(rotten, PATH).load()
        assert found in (entry(1), entry(2))


@pytest.mark.parametrize("newest", [0, 1])
def test_the_slots_of_earlier_releases_are_read_and_written_apart(newest: int) -> None:
    replica = Replica()
    slots = [encode_slot(8 - newest, entry(4)), encode_slot(7 + newest, entry(3))]
    old = replica.disk.open(PATH, create=True)
    old.write_at(0, slots[0] + slots[1])
    file = FlushedEndFile(replica.disk, PATH)
    assert file.load() == (entry(3) if newest else entry(4))
    file.write(entry(5))
    assert FlushedEndFile(replica.disk, PATH).load() == entry(5)
    file.store(entry(2))
    data = replica.disk.read(PATH)
    found = [p for p in range(0, len(data), SLOT_BYTES) if decode_slot(data[p : p + SLOT_BYTES])]
    assert found == [0, 4096]
    assert FlushedEndFile(replica.disk, PATH).load() == entry(2)
