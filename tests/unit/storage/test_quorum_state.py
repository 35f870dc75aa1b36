"""quorum-state in both versions, against what stock Kafka wrote."""

from __future__ import annotations

import pytest

from quorate.raft.messages import ElectionState
from quorate.records.ids import DirectoryId, Epoch, NodeId, ReplicaKey, parse_uuid
from quorate.records.voters import Voter, VoterSet
from quorate.storage.errors import StorageError
from quorate.storage.quorum_state import (
    decode_quorum_state,
    encode_quorum_state,
    read_quorum_state,
    write_quorum_state,
)

from .conftest import THREE, Replica

DIRECTORY_ID = DirectoryId(parse_uuid("mF_dWYUR3qCgn-IxU-bhdA"))
STATIC = VoterSet(tuple(Voter(ReplicaKey(NodeId(i))) for i in (1, 2, 3)))
STOCK = [
    (
        0,
        b'{"clusterId":"","leaderId":3,"leaderEpoch":1,"votedId":3,"appliedOffset":0,"currentVoters":'
        b'[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}',
        ElectionState(Epoch(1), NodeId(3), ReplicaKey(NodeId(3))),
    ),
    (
        0,
        b'{"clusterId":"","leaderId":3,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters"'
        b':[{"voterId":1},{"voterId":2},{"voterId":3}],"data_version":0}',
        ElectionState(Epoch(1), NodeId(3)),
    ),
    (
        1,
        b'{"leaderId":4,"leaderEpoch":4,"votedId":4,"votedDirectoryId":"mF_dWYUR3qCgn-IxU-bhdA",'
        b'"data_version":1}',
        ElectionState(Epoch(4), NodeId(4), ReplicaKey(NodeId(4), DIRECTORY_ID)),
    ),
    (
        1,
        b'{"leaderId":-1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        b'"data_version":1}',
        ElectionState(Epoch(3)),
    ),
]


@pytest.mark.parametrize(("version", "data", "state"), STOCK)
def test_the_bytes_are_kafkas(version: int, data: bytes, state: ElectionState) -> None:
    assert decode_quorum_state(data) == state
    assert encode_quorum_state(state, version, STATIC) == data


def test_a_node_that_is_to_join_keeps_the_directory_of_its_vote() -> None:
    state = ElectionState(Epoch(4), None, ReplicaKey(NodeId(4), DIRECTORY_ID))
    assert decode_quorum_state(encode_quorum_state(state, 0, VoterSet())) == state


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"leaderId":1,"leaderEp', "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"leaderId":1}', "data_version is None"),
        (STOCK[2][1].replace(b'_version":1', b'_version":2'), "data_version is 2"),
        (STOCK[2][1].replace(b'Epoch":4', b'Epoch":true'), "leaderEpoch is True"),
        (STOCK[2][1].replace(b'Epoch":4', b'Epoch":-2'), "below -1"),
        (STOCK[2][1].replace(b'Epoch":4', b'Epoch":2147483647'), "storage recover"),
        (STOCK[2][1].replace(b'"mF_dWYUR3qCgn-IxU-bhdA"', b"7"), "votedDirectoryId is 7"),
        (STOCK[2][1].replace(b"mF_dWYUR3qCgn-IxU-bhdA", b"mF"), "not a uuid"),
    ],
)
def test_a_malformed_file_is_refused_by_its_field(data: bytes, reason: str) -> None:
    replica = Replica()
    path = "/data/quorum-state"
    replica.disk.open(path, create=True).write_at(0, data)
    with pytest.raises(StorageError, match=reason) as refusal:
        read_quorum_state(replica.disk, path)
    assert path in str(refusal.value)
    assert "restore it" in str(refusal.value)


def test_a_missing_file_is_none() -> None:
    assert read_quorum_state(Replica().disk, "/data/quorum-state") is None


def test_what_is_written_is_durable() -> None:
    disk = Replica().disk
    state = ElectionState(Epoch(7), NodeId(2), THREE.voters[1].key)
    write_quorum_state(disk, "/data/quorum-state", state, kraft_version=1, voters=THREE)
    assert disk.first_unsafe("/data", "quorum-state") is None
    assert read_quorum_state(disk, "/data/quorum-state") == state
