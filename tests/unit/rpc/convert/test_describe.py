"""Descriptions of a replica and of the quorum, to protobuf and back."""

from __future__ import annotations

import pytest

from quorate.raft import messages as m
from quorate.raft.last_message import Heard
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from quorate.records.voters import Voter
from quorate.rpc.convert import describe as convert
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from tests.unit.raft import cores


def test_descriptions_survive() -> None:
    known = m.ReplicaState(
        key=cores.key(1),
        log_end_offset=Offset(5),
        last_fetch_ms=Millis(10),
        last_caught_up_ms=Millis(9),
        endpoints=cores.endpoints(1),
    )
    unknown = m.ReplicaState(
        key=cores.key(2), log_end_offset=None, last_fetch_ms=None, last_caught_up_ms=None
    )
    leader = m.LeaderInfo(NodeId(1), Epoch(2))
    answer = m.DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader=leader,
        high_watermark=Offset(5),
        voters=(known, unknown),
        observers=(unknown,),
        now_ms=Millis(12),
        remarks=("healing",),
    )
    assert convert.describe_response(convert.pb_describe_response(answer)) == answer
    empty = m.DescribeQuorumResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=leader)
    assert convert.describe_response(convert.pb_describe_response(empty)) == empty


def test_a_pending_change_and_what_is_left_without_a_leader_survive() -> None:
    observer = m.ReplicaState(
        key=cores.key(4),
        log_end_offset=Offset(5),
        last_fetch_ms=Millis(10),
        last_caught_up_ms=Millis(9),
        endpoints=cores.endpoints(4),
        obstacle=m.Reason.VOTER_LAGGING,
        obstacle_text="node 4 is 7 records behind",
    )
    answer = m.DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader=m.LeaderInfo(NodeId(1), Epoch(2)),
        observers=(observer,),
        kraft_version=1,
        uncommitted_voter_change=m.VoterChange(
            m.ChangeKind.ADD, Voter(cores.key(5), cores.endpoints(5))
        ),
        decommissioned=(cores.key(3), cores.key(2)),
        last_leader=m.LeaderInfo(NodeId(2), Epoch(1), cores.endpoints(2)),
        heard=(Heard(NodeId(2), Millis(3)), Heard(NodeId(3), Millis(4))),
        refused=(observer,),
    )
    assert convert.describe_response(convert.pb_describe_response(answer)) == answer


def test_versions_of_a_replica_survive() -> None:
    who = m.ApiVersionsResponse(
        error=ErrorCode.NONE,
        cluster_id=cores.CLUSTER,
        key=cores.key(4),
        kraft_version_min=0,
        kraft_version_max=1,
    )
    message = convert.pb_api_versions_response(who, software_version="9")
    assert message.software_version == "9"
    assert convert.api_versions_response(message) == who
    nothing = pb.ApiVersionsResponse(node=pb.ReplicaKey(id=4))
    assert convert.api_versions_response(nothing).kraft_version_max == 0


@pytest.mark.parametrize(("low", "high"), [(0, 70_000), (-1, 1), (2, 1)])
def test_versions_are_as_wide_as_the_record_that_holds_them(low: int, high: int) -> None:
    supported = pb.SupportedFeature(name="kraft.version", min_version=low, max_version=high)
    with pytest.raises(ValueError, match="is no range of versions from 0 to 32767"):
        convert.api_versions_response(pb.ApiVersionsResponse(supported_features=[supported]))
