"""Control records: their bytes, and what survives a round trip."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.records.batch import check_batch, encode_batch, iter_batches, read_records
from quorate.records.codec.schema import SchemaError
from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    control_records,
    decode_control,
    encode_control,
    encode_control_batch,
)
from quorate.records.ids import DirectoryId, NodeId, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet

DATA = Path(__file__).parent / "data"

node_ids = st.integers(0, 2**31 - 1).map(NodeId)
directories = st.none() | st.binary(min_size=16, max_size=16).filter(any).map(DirectoryId)
endpoints = st.builds(Endpoint, st.text(max_size=9), st.text(max_size=9), st.integers(0, 65535))
voters = st.builds(
    Voter,
    st.builds(ReplicaKey, node_ids, directories),
    st.lists(endpoints, max_size=3).map(tuple),
    st.integers(0, 3),
    st.integers(0, 3),
)
voter_sets = st.lists(voters, max_size=5, unique_by=lambda v: v.key.node_id).map(VoterSet.of)
id_tuples = st.lists(node_ids, max_size=5).map(tuple)
records: st.SearchStrategy[ControlRecord] = st.one_of(
    st.builds(LeaderChange, node_ids, id_tuples, id_tuples, st.sampled_from([0, 1])),
    st.builds(KRaftVersion, st.integers(0, 9)),
    st.builds(KRaftVoters, voter_sets),
    st.builds(SnapshotHeader, st.integers(-1, 2**60)),
    st.just(SnapshotFooter()),
)


@given(records)
def test_control_records_come_back(record: ControlRecord) -> None:
    assert decode_control(*encode_control(record)) == record


@given(st.lists(records, min_size=1, max_size=4), st.integers(0, 2**40))
def test_a_control_batch_holds_its_records_in_order(
    written: list[ControlRecord], base_offset: int
) -> None:
    batch = encode_control_batch(written, timestamp_ms=5, base_offset=base_offset, epoch=3)
    header = check_batch(batch)
    assert (header.base_offset, header.epoch, header.is_control) == (base_offset, 3, True)
    assert control_records(b"before" + batch, 6, header) == tuple(written)


def test_a_data_batch_has_no_control_records() -> None:
    batch = encode_batch([b"\x01\x14\0\0"], timestamp_ms=1)
    assert control_records(batch, 0, check_batch(batch)) == ()


def test_a_leader_change_has_the_bytes_that_kafka_writes() -> None:
    record = LeaderChange(NodeId(2), (NodeId(1), NodeId(2)), (NodeId(2),))
    key, value = encode_control(record)
    assert key.hex() == "00000002"
    assert value.hex() == "0000" + "00000002" + "03" + "0000000100" + "0000000200" + (
        "02" + "0000000200" + "00"
    )


def test_the_control_records_of_a_real_log_are_understood() -> None:
    """A quorum of static voters whose kraft.version was raised later."""
    data = (DATA / "kafka.log").read_bytes()
    found = [r for at, header in iter_batches(data) for r in control_records(data, at, header)]
    three = (NodeId(1), NodeId(2), NodeId(3))
    match found:
        case [LeaderChange(leader, named, granting, 0, None), KRaftVersion(1), KRaftVoters(voters)]:
            assert leader in three
            assert named == three
            assert set(granting) <= set(three)
            assert tuple(voter.key.node_id for voter in voters) == three
        case _:
            pytest.fail(f"other control records: {found}")


@pytest.mark.parametrize("name", ["kafka.log", "kafka.checkpoint"])
def test_real_control_records_are_written_back_byte_for_byte(name: str) -> None:
    data = (DATA / name).read_bytes()
    for position, header in iter_batches(data):
        if header.is_control:
            for record in read_records(data, position, header):
                assert encode_control(decode_control(record.key, record.value)) == (
                    record.key,
                    record.value,
                )


def value_of(record: ControlRecord) -> bytes:
    return encode_control(record)[1]


VOTERS_KEY = struct.pack(">hh", 0, 6)
CHANGE_KEY = struct.pack(">hh", 0, 2)
ONE = Voter(ReplicaKey(NodeId(1), DirectoryId(b"1" * 16)), (Endpoint("GRPC", "a", 1),))
TWO = Voter(ReplicaKey(NodeId(2), DirectoryId(b"2" * 16)), (Endpoint("GRPC", "b", 2),))


def test_an_unknown_tagged_field_survives() -> None:
    value = value_of(KRaftVoters(VoterSet((ONE,))))[:-1] + bytes.fromhex("01914e0261ff")
    record = decode_control(VOTERS_KEY, value)
    assert record == KRaftVoters(VoterSet((ONE,)), verbatim=value)
    assert encode_control(record) == (VOTERS_KEY, value)


def test_who_is_decommissioned_travels_in_a_tagged_field_of_ours() -> None:
    voters = VoterSet((ONE,), (TWO.key,))
    value = value_of(KRaftVoters(voters))
    plain = value_of(KRaftVoters(VoterSet((ONE,))))
    assert value.startswith(plain[:-1] + bytes.fromhex("01904e"))
    assert decode_control(VOTERS_KEY, value) == KRaftVoters(voters)


def test_voters_in_another_order_are_sorted_and_written_back_as_they_were() -> None:
    """Kafka writes them in the order of a hash map, which is not that of large ids."""
    ordered = value_of(KRaftVoters(VoterSet((ONE, TWO))))
    size = (len(ordered) - 4) // 2
    value = ordered[:3] + ordered[3 + size : -1] + ordered[3 : 3 + size] + b"\0"
    record = decode_control(VOTERS_KEY, value)
    assert isinstance(record, KRaftVoters)
    assert record.voters == VoterSet((ONE, TWO))
    assert encode_control(record) == (VOTERS_KEY, value)


def test_directory_ids_of_a_newer_leader_change_survive() -> None:
    plain = value_of(LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),), version=1))
    value = plain.replace(bytes(16), b"d" * 16)
    record = decode_control(CHANGE_KEY, value)
    assert record == LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),), 1, value)
    assert encode_control(record) == (CHANGE_KEY, value)


def test_verbatim_bytes_that_say_something_else_are_not_written() -> None:
    stale = value_of(KRaftVoters(VoterSet((ONE,))))
    record = KRaftVoters(VoterSet((TWO,)), verbatim=stale)
    assert encode_control(record) == encode_control(KRaftVoters(VoterSet((TWO,))))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"\0\0", "needs a key and a value"),
        (CHANGE_KEY, None, "needs a key and a value"),
        (b"\0\0", b"\0\0", "needs a key and a value"),
        (struct.pack(">hh", 0, 9), b"\0\0\0", "unknown control record type 9"),
        (CHANGE_KEY, b"\0\2\0", "LeaderChangeMessage has versions 0 to 1, not 2"),
        (struct.pack(">hh", 0, 5), b"\0\0\0", "KRaftVersionRecord version 0"),
        (struct.pack(">hh", 0, 4), b"\0\0\0\0", "1 bytes are left behind its end"),
    ],
)
def test_malformed_control_records_are_refused(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(SchemaError, match=reason):
        decode_control(key, value)


def test_a_voter_twice_is_refused() -> None:
    one = value_of(KRaftVoters(VoterSet((ONE,))))
    value = one[:2] + b"\x03" + one[3:-1] * 2 + b"\0"
    with pytest.raises(SchemaError, match="each once"):
        decode_control(VOTERS_KEY, value)
