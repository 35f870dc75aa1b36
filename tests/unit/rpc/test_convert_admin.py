"""DescribeQuorum and the membership requests to protobuf and back."""

from __future__ import annotations

import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplicaKey
from quorate.records.voters import Voter
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


def test_a_pending_change_and_what_is_left_without_a_leader_survive() -> None:
    observer = m.ReplicaState(
        cores.key(4),
        Offset(5),
        Millis(10),
        Millis(9),
        cores.endpoints(4),
        m.Reason.VOTER_LAGGING,
        "node 4 is 7 records behind",
    )
    answer = m.DescribeQuorumResponse(
        ErrorCode.NONE,
        m.LeaderInfo(NodeId(1), Epoch(2)),
        observers=(observer,),
        kraft_version=1,
        uncommitted_voter_change=m.VoterChange(
            m.ChangeKind.ADD, Voter(cores.key(5), cores.endpoints(5))
        ),
        decommissioned=(cores.key(3), cores.key(2)),
        last_leader=m.LeaderInfo(NodeId(2), Epoch(1), cores.endpoints(2)),
        heard=(m.Heard(NodeId(2), Millis(3)), m.Heard(NodeId(3), Millis(4))),
    )
    assert convert.describe_response(convert.pb_describe_response(answer)) == answer


@pytest.mark.parametrize(
    "kind",
    [
        pb.AddRaftVoterResponse,
        pb.RemoveRaftVoterResponse,
        pb.UpdateRaftVoterResponse,
        pb.UpdateFeaturesResponse,
        pb.TransferLeadershipResponse,
        pb.TakeLeaveResponse,
    ],
)
def test_membership_answers_survive(kind: type[pb.AddRaftVoterResponse]) -> None:
    leader = m.LeaderInfo(NodeId(1), Epoch(2), cores.endpoints(1))
    refused = m.MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT, "why", leader, m.Reason.VOTER_LAGGING, (("lag", "7"),)
    )
    done = m.MembershipResponse(ErrorCode.NONE, "", leader)
    for answer in (refused, done):
        assert convert.membership_response(kind(**convert.membership_fields(answer))) == answer


def test_a_reason_of_a_later_release_is_still_a_refusal() -> None:
    answer = convert.membership_response(
        pb.AddRaftVoterResponse(error_code=7, error_message="why", reason="NEWER")
    )
    assert (answer.error, answer.reason) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert convert.membership_response(pb.AddRaftVoterResponse(error_code=9999)).error is (
        ErrorCode.UNKNOWN_SERVER_ERROR
    )


def test_versions_of_a_replica_survive() -> None:
    who = m.ApiVersionsResponse(ErrorCode.NONE, cores.CLUSTER, cores.key(4), 0, 1)
    message = convert.pb_api_versions_response(who, software_version="9")
    assert message.software_version == "9"
    assert convert.api_versions_response(message) == who
    nothing = pb.ApiVersionsResponse(node=pb.ReplicaKey(id=4))
    assert convert.api_versions_response(nothing).kraft_version_max == 0


def test_membership_requests_survive() -> None:
    added = m.AddRaftVoterRequest(
        cores.CLUSTER, cores.key(4), cores.endpoints(4), Millis(9), force=True
    )
    assert convert.add_voter(convert.pb_add_voter(added)) == added
    joined = m.AddRaftVoterRequest(
        cores.CLUSTER, cores.key(4), (), Millis(9), ack_when_committed=False, auto_join=True
    )
    assert convert.add_voter(convert.pb_add_voter(joined)) == joined
    removed = m.RemoveRaftVoterRequest(cores.CLUSTER, cores.key(4), Millis(9), auto_join=True)
    assert convert.remove_voter(convert.pb_remove_voter(removed)) == removed
    scaled = m.RemoveRaftVoterRequest(cores.CLUSTER, cores.key(4), Millis(9), scaled_away=True)
    assert convert.remove_voter(convert.pb_remove_voter(scaled)) == scaled
    updated = m.UpdateRaftVoterRequest(
        cores.CLUSTER, Epoch(2), cores.key(4), cores.endpoints(4), 0, 1
    )
    assert convert.update_voter(convert.pb_update_voter(updated)) == updated
    upgraded = m.UpdateFeaturesRequest(1, validate_only=True)
    assert convert.update_features(convert.pb_update_features(upgraded)) == upgraded
    moved = m.TransferLeadershipRequest(cores.CLUSTER, ReplicaKey(NodeId(4)))
    assert convert.transfer_leadership(convert.pb_transfer_leadership(moved)) == moved
    for key in (cores.key(4), ReplicaKey(NodeId(4))):
        spared = m.TakeLeaveRequest(cores.CLUSTER, key)
        assert convert.take_leave(convert.pb_take_leave(spared)) == spared


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


@pytest.mark.parametrize(("low", "high"), [(0, 70_000), (-1, 1), (2, 1)])
def test_versions_are_as_wide_as_the_record_that_holds_them(low: int, high: int) -> None:
    feature = pb.KRaftVersionFeature(min_supported_version=low, max_supported_version=high)
    request = pb.UpdateRaftVoterRequest(k_raft_version_feature=feature)
    with pytest.raises(ValueError, match="is no range of versions from 0 to 32767"):
        convert.update_voter(request)
    supported = pb.SupportedFeature(name="kraft.version", min_version=low, max_version=high)
    with pytest.raises(ValueError, match="is no range of versions from 0 to 32767"):
        convert.api_versions_response(pb.ApiVersionsResponse(supported_features=[supported]))
