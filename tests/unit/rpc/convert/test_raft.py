"""Every message of the raft protocol survives the way to protobuf and back."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.raft import messages as m
from quorate.raft.identity.voter_set_mark import VotersMark
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplicaKey
from quorate.records.voters import Endpoint
from quorate.rpc.convert import raft as convert
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from tests.unit.raft import cores

WAYS = (Endpoint("GRPC", "a", 9094), Endpoint("CONTROLLER", "a", 9093))
ANYBODY = ReplicaKey(NodeId(3))
LEADER = m.LeaderInfo(
    NodeId(1), Epoch(4), (Endpoint("GRPC", "a", 9094), Endpoint("CONTROLLER", "a", 9093))
)
LAST = cores.end(7, 2)
NOBODY = m.LeaderInfo(None, Epoch(4))


@pytest.mark.parametrize("replica", [cores.key(2), ANYBODY])
def test_requests_survive(replica: ReplicaKey) -> None:
    vote = m.VoteRequest(
        cluster_id=cores.CLUSTER,
        voter=replica,
        replica=cores.key(1),
        replica_epoch=Epoch(3),
        last=cores.end(7, 2),
        pre_vote=True,
    )
    assert convert.vote_request(convert.pb_vote_request(vote)) == vote
    begin = m.BeginQuorumEpochRequest(cores.CLUSTER, replica, NodeId(1), Epoch(3), WAYS)
    assert convert.begin_request(convert.pb_begin_request(begin)) == begin
    end = m.EndQuorumEpochRequest(cores.CLUSTER, NodeId(1), Epoch(3), (replica,), WAYS)
    assert convert.end_request(convert.pb_end_request(end)) == end
    fetch = m.FetchRequest(
        cluster_id=cores.CLUSTER,
        replica=replica,
        current_leader_epoch=Epoch(3),
        fetch_offset=Offset(7),
        last_fetched_epoch=Epoch(2),
        max_wait_ms=Millis(500),
        max_bytes=1024,
        high_watermark=Offset(5),
        replica_endpoints=WAYS,
        read_round=9,
        incarnation=2**63 - 1,
        voters_at=VotersMark(offset=Offset(2), epoch=Epoch(1), checksum=2**32 - 1),
    )
    assert convert.fetch_request(convert.pb_fetch_request(fetch)) == fetch
    part = m.FetchSnapshotRequest(
        cluster_id=cores.CLUSTER,
        replica=replica,
        current_leader_epoch=Epoch(3),
        snapshot_id=cores.end(7, 2),
        position=40,
        max_bytes=1024,
        incarnation=2**63 - 1,
    )
    assert convert.fetch_snapshot_request(convert.pb_fetch_snapshot_request(part)) == part


def test_a_fetch_of_an_anonymous_observer_survives() -> None:
    fetch = m.FetchRequest(
        cluster_id=cores.CLUSTER,
        replica=None,
        current_leader_epoch=Epoch(0),
        fetch_offset=Offset(0),
        last_fetched_epoch=Epoch(0),
        max_wait_ms=Millis(0),
        max_bytes=1,
    )
    assert convert.fetch_request(convert.pb_fetch_request(fetch)) == fetch


@pytest.mark.parametrize("leader", [LEADER, NOBODY])
def test_responses_survive(leader: m.LeaderInfo) -> None:
    vote = m.VoteResponse(ErrorCode.INVALID_VOTER_KEY, leader, vote_granted=True)
    assert convert.vote_response(convert.pb_vote_response(vote)) == vote
    begin = m.BeginQuorumEpochResponse(ErrorCode.NONE, leader)
    assert convert.begin_response(convert.pb_begin_response(begin)) == begin
    end = m.EndQuorumEpochResponse(ErrorCode.NONE, leader)
    assert convert.end_response(convert.pb_end_response(end)) == end
    chunk = m.FetchSnapshotResponse(
        error=ErrorCode.NONE,
        leader=leader,
        snapshot_id=cores.end(7, 2),
        size_bytes=100,
        position=40,
        chunk=b"bytes",
    )
    assert convert.fetch_snapshot_response(convert.pb_fetch_snapshot_response(chunk)) == chunk


def parsed(data: bytes) -> m.FetchedBatches:
    return m.FetchedBatches(data, ())


@pytest.mark.parametrize(
    "answer",
    [
        m.FetchResponse(
            error=ErrorCode.NONE,
            leader=LEADER,
            high_watermark=Offset(5),
            log_start_offset=Offset(0),
            records=parsed(b"x"),
            read_round=3,
        ),
        m.FetchResponse(
            error=ErrorCode.NONE,
            leader=LEADER,
            high_watermark=Offset(5),
            log_start_offset=Offset(0),
            diverging=cores.end(4, 1),
            voters_known=(VotersMark(offset=Offset(2), epoch=Epoch(1), checksum=2**32 - 1),),
        ),
        m.FetchResponse(
            error=ErrorCode.NONE,
            leader=LEADER,
            high_watermark=Offset(5),
            log_start_offset=Offset(9),
            snapshot_id=cores.end(9, 1),
        ),
        m.FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=NOBODY),
    ],
)
def test_fetch_answers_survive(answer: m.FetchResponse) -> None:
    assert convert.fetch_response(convert.pb_fetch_response(answer), parsed) == answer


@pytest.mark.parametrize("refusal", m.VoteRefusal)
def test_why_a_vote_was_refused_survives(refusal: m.VoteRefusal) -> None:
    vote = m.VoteResponse(ErrorCode.NONE, LEADER, refusal=refusal)
    assert convert.vote_response(convert.pb_vote_response(vote)) == vote


def test_a_reason_of_a_newer_release_is_none() -> None:
    message = pb.VoteResponse()
    message.MergeFromString(b"\x20\x63")
    assert convert.vote_response(message).refusal is None


def test_an_unknown_error_code_is_not_taken_for_success() -> None:
    message = pb.VoteResponse(error_code=9999)
    assert convert.vote_response(message).error is ErrorCode.UNKNOWN_SERVER_ERROR


def vote_message(**fields: object) -> pb.VoteRequest:
    sound = convert.pb_vote_request(cores.vote(1, 2, 3, cores.end(1, 1)))
    for name, value in fields.items():
        setattr(sound, name, value)
    return sound


@pytest.mark.parametrize(
    ("field", "value"),
    [("voter_id", -1), ("replica_id", -2), ("voter_directory_id", b"short"), ("replica_epoch", -1)],
)
def test_bad_input_names_the_field(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        convert.vote_request(vote_message(**{field: value}))


@pytest.mark.parametrize("port", [0, 65_536])
def test_a_listener_needs_a_port(port: int) -> None:
    endpoint = pb.Endpoint(name="GRPC", host="a", port=port)
    message = pb.BeginQuorumEpochRequest(voter_id=1, leader_id=2, leader_endpoints=[endpoint])
    with pytest.raises(ValueError, match="leader_endpoints"):
        convert.begin_request(message)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"voter_directory_id": bytes(16)}, "voter_directory_id: sixteen bytes of zero are no id"),
        ({"cluster_id": "c" * 256}, "cluster_id: 256 characters, and it may have 255 bytes"),
        ({"last_offset": -1}, "last_offset: -1 is negative"),
    ],
)
def test_a_vote_is_refused_with_the_name_of_its_field(request_: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        convert.vote_request(pb.VoteRequest(**request_))


def test_there_is_an_end_to_listeners_and_candidates() -> None:
    way = pb.Endpoint(name="GRPC", host="a", port=9094)
    with pytest.raises(ValueError, match="leader_endpoints: 33 items where 32 are allowed"):
        convert.end_request(pb.EndQuorumEpochRequest(leader_endpoints=[way] * 33))
    candidates = [pb.ReplicaKey(id=1)] * 1001
    with pytest.raises(ValueError, match="preferred_candidates: 1001 items where 1000 are"):
        convert.end_request(pb.EndQuorumEpochRequest(preferred_candidates=candidates))
    long = pb.Endpoint(name="GRPC", host="h" * 256, port=9094)
    with pytest.raises(ValueError, match=r"leader_endpoints\.host: 256 characters"):
        convert.end_request(pb.EndQuorumEpochRequest(leader_endpoints=[long]))
