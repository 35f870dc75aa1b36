"""Changes of the quorum, as the raft service and as the admin API tell them."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import ClusterId, Epoch, Millis, NodeId, ReplicaKey
from quorate.rpc.convert import membership as convert
from quorate.rpc.gen.admin.v1 import admin_pb2
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from quorate.rpc.method_table import ADMIN, RAFT
from tests.unit.raft import cores

ANY = ClusterId("")
BARE = ReplicaKey(NodeId(4))
DIRECTORY = cores.key(4).directory_id
LISTENER = pb.Endpoint(name="GRPC", host="node-4", port=9094)
SERVICES = [pb, admin_pb2]
CHANGES: list[m.MembershipRequest] = [
    m.AddRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(4),
        listeners=cores.endpoints(4),
        timeout_ms=Millis(9),
        force=True,
    ),
    m.RemoveRaftVoterRequest(
        cluster_id=cores.CLUSTER, voter=cores.key(4), timeout_ms=Millis(9), force=True
    ),
    m.UpdateRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        current_leader_epoch=Epoch(2),
        voter=cores.key(4),
        listeners=cores.endpoints(4),
        kraft_version_min=0,
        kraft_version_max=1,
    ),
    m.UpdateFeaturesRequest(1, validate_only=True),
    m.TransferLeadershipRequest(cores.CLUSTER, BARE),
    m.TransferLeadershipRequest(cores.CLUSTER, cores.key(4)),
]
# What only replicas ask each other, and the sidecar.
OF_REPLICAS: list[m.MembershipRequest] = [
    m.AddRaftVoterRequest(
        cluster_id=cores.CLUSTER,
        voter=cores.key(4),
        listeners=(),
        timeout_ms=Millis(9),
        ack_when_committed=False,
        auto_join=True,
    ),
    m.RemoveRaftVoterRequest(
        cluster_id=cores.CLUSTER, voter=cores.key(4), timeout_ms=Millis(9), auto_join=True
    ),
    m.RemoveRaftVoterRequest(
        cluster_id=cores.CLUSTER, voter=cores.key(4), timeout_ms=Millis(9), scaled_away=True
    ),
    m.TakeLeaveRequest(cores.CLUSTER, cores.key(4)),
    m.TakeLeaveRequest(cores.CLUSTER, BARE),
]


def test_every_change_is_a_method_of_the_raft_service_and_all_but_one_of_the_admin_api() -> None:
    shapes: set[Any] = set(get_args(m.MembershipRequest))
    names = {shape.__name__.removesuffix("Request") for shape in shapes}
    assert names <= set(RAFT.methods_by_name)
    assert names - set(ADMIN.methods_by_name) == {"TakeLeave"}


@pytest.mark.parametrize("request_", [*CHANGES, *OF_REPLICAS], ids=convert.method_of)
def test_a_change_survives_on_its_way_to_a_replica(request_: m.MembershipRequest) -> None:
    message = convert.message_of(request_, RAFT)
    assert message.DESCRIPTOR.full_name == f"quorate.raft.v1.{type(request_).__name__}"
    assert convert.request_of(message) == request_


@pytest.mark.parametrize("request_", CHANGES, ids=convert.method_of)
def test_a_change_survives_on_its_way_to_a_sidecar(request_: m.MembershipRequest) -> None:
    message = convert.message_of(request_, ADMIN)
    assert message.DESCRIPTOR.full_name == f"quorate.admin.v1.{type(request_).__name__}"
    assert convert.request_of(message) == request_


def test_a_sidecar_is_not_asked_for_what_only_replicas_say() -> None:
    for request in OF_REPLICAS[:3]:
        arrived = convert.request_of(convert.message_of(request, ADMIN))
        # Its caller waits until it is done, and speaks for no replica.
        assert not getattr(arrived, "auto_join", False)
        assert not getattr(arrived, "scaled_away", False)
        assert getattr(arrived, "ack_when_committed", True)


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_left_out_stays_empty(service: Any) -> None:  # noqa: ANN401 - a module
    removed = convert.request_of(service.RemoveRaftVoterRequest(voter_id=4))
    assert removed == m.RemoveRaftVoterRequest(cluster_id=ANY, voter=BARE, timeout_ms=Millis(0))
    updated = convert.request_of(service.UpdateRaftVoterRequest(voter_id=4))
    assert updated == m.UpdateRaftVoterRequest(
        cluster_id=ANY,
        current_leader_epoch=Epoch(0),
        voter=BARE,
        listeners=(),
        kraft_version_min=0,
        kraft_version_max=0,
    )
    moved = convert.request_of(service.TransferLeadershipRequest(voter_id=4))
    assert moved == m.TransferLeadershipRequest(ANY, BARE)


def test_who_asks_a_replica_says_whether_it_waits_for_the_commit() -> None:
    request = pb.AddRaftVoterRequest(voter_id=4)
    assert convert.request_of(request) == m.AddRaftVoterRequest(
        cluster_id=ANY, voter=BARE, listeners=(), timeout_ms=Millis(0), ack_when_committed=False
    )


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"voter_id": -1}, "voter_id"),
        ({"voter_directory_id": b"short"}, "voter_directory_id"),
        ({"listeners": [pb.Endpoint(name="GRPC")]}, "listeners"),
        ({"current_leader_epoch": -1}, "current_leader_epoch"),
        ({"cluster_id": "c" * 256}, "cluster_id"),
    ],
)
def test_bad_input_names_the_field(service: Any, fields: dict[str, Any], field: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=field):
        convert.request_of(service.UpdateRaftVoterRequest(**fields))


@pytest.mark.parametrize("service", SERVICES)
def test_kraft_version_is_the_one_feature(service: Any) -> None:  # noqa: ANN401 - a module
    ours = pb.FeatureUpdate(feature="kraft.version", max_version_level=1)
    request = service.UpdateFeaturesRequest(feature_updates=[ours], validate_only=True)
    assert convert.request_of(request) == m.UpdateFeaturesRequest(1, validate_only=True)
    with pytest.raises(ValueError, match="feature_updates: name a feature"):
        convert.request_of(service.UpdateFeaturesRequest())
    other = pb.FeatureUpdate(feature="metadata.version", max_version_level=1)
    with pytest.raises(convert.UnsupportedFeatureError, match=r"metadata\.version cannot be"):
        convert.request_of(service.UpdateFeaturesRequest(feature_updates=[ours, other]))


@pytest.mark.parametrize(("low", "high"), [(0, 70_000), (-1, 1), (2, 1)])
def test_versions_are_as_wide_as_the_record_that_holds_them(low: int, high: int) -> None:
    feature = pb.KRaftVersionFeature(min_supported_version=low, max_supported_version=high)
    request = pb.UpdateRaftVoterRequest(k_raft_version_feature=feature)
    with pytest.raises(ValueError, match="is no range of versions from 0 to 32767"):
        convert.request_of(request)


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
def test_answers_survive(kind: type[pb.AddRaftVoterResponse]) -> None:
    leader = m.LeaderInfo(NodeId(1), Epoch(2), cores.endpoints(1))
    refused = m.MembershipResponse(
        ErrorCode.REQUEST_TIMED_OUT, "why", leader, m.Reason.VOTER_LAGGING, (("lag", "7"),)
    )
    done = m.MembershipResponse(ErrorCode.NONE, "", leader)
    for answer in (refused, done):
        assert convert.answer_of(kind(**convert.answer_fields(answer))) == answer


def test_a_reason_of_a_later_release_is_still_a_refusal() -> None:
    answer = convert.answer_of(
        pb.AddRaftVoterResponse(error_code=7, error_message="why", reason="NEWER")
    )
    assert (answer.error, answer.reason) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert convert.answer_of(pb.AddRaftVoterResponse(error_code=9999)).error is (
        ErrorCode.UNKNOWN_SERVER_ERROR
    )


@pytest.mark.parametrize("key", [BARE, cores.key(4)])
def test_a_key_survives(key: ReplicaKey) -> None:
    assert convert.key_in(convert.pb_key(key)) == key
    assert convert.pb_key(cores.key(4)) == pb.ReplicaKey(id=4, directory_id=DIRECTORY)
