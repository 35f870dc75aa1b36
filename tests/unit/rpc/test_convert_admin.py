"""DescribeQuorum and the membership requests to protobuf and back."""

from __future__ import annotations

import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from quorate.rpc import convert_admin as convert
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from tests.unit.raft import cores

DIRECTORY = cores.key(4).directory_id


def test_descriptions_survive() -> None:
    known = m.ReplicaState(cores.key(1), Offset(5), Millis(10), Millis(9), cores.endpoints(1))
    unknown = m.ReplicaState(cores.key(2), None, None, None)
    leader = m.LeaderInfo(NodeId(1), Epoch(2))
    answer = m.DescribeQuorumResponse(
        ErrorCode.NONE, leader, Offset(5), (known, unknown), (unknown,), Millis(12), ("healing",)
    )
    assert convert.describe_response(convert.pb_describe_response(answer)) == answer
    empty = m.DescribeQuorumResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader)
    assert convert.describe_response(convert.pb_describe_response(empty)) == empty


def test_membership_requests_are_read() -> None:
    added = pb.AddRaftVoterRequest(
        cluster_id="cluster",
        timeout_ms=100,
        voter_id=4,
        voter_directory_id=DIRECTORY,
        listeners=[pb.Endpoint(name="GRPC", host="node-4", port=9094)],
        ack_when_committed=True,
        auto_join=True,
    )
    assert convert.add_voter(added) == m.AddRaftVoterRequest(
        cores.CLUSTER, cores.key(4), cores.endpoints(4), Millis(100), auto_join=True
    )
    removed = pb.RemoveRaftVoterRequest(
        cluster_id="cluster", timeout_ms=100, voter_id=4, voter_directory_id=DIRECTORY, force=True
    )
    assert convert.remove_voter(removed) == m.RemoveRaftVoterRequest(
        cores.CLUSTER, cores.key(4), Millis(100), force=True
    )
    updated = pb.UpdateRaftVoterRequest(
        cluster_id="cluster",
        current_leader_epoch=2,
        voter_id=4,
        voter_directory_id=DIRECTORY,
        k_raft_version_feature=pb.KRaftVersionFeature(max_supported_version=1),
    )
    assert convert.update_voter(updated) == m.UpdateRaftVoterRequest(
        cores.CLUSTER, Epoch(2), cores.key(4), (), 0, 1
    )
    moved = pb.TransferLeadershipRequest(
        cluster_id="cluster", voter_id=4, voter_directory_id=DIRECTORY
    )
    assert convert.transfer_leadership(moved) == m.TransferLeadershipRequest(
        cores.CLUSTER, cores.key(4)
    )


def test_only_kraft_version_is_a_feature_of_this_service() -> None:
    update = pb.FeatureUpdate(feature="kraft.version", max_version_level=1)
    request = pb.UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
    assert convert.update_features(request) == m.UpdateFeaturesRequest(1, validate_only=True)
    other = pb.UpdateFeaturesRequest(feature_updates=[pb.FeatureUpdate(feature="x")])
    with pytest.raises(ValueError, match="feature_updates"):
        convert.update_features(other)
