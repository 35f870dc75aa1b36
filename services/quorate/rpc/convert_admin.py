"""DescribeQuorum and the membership requests, from and to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quorate.raft import messages as m
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from quorate.records.voters import KRAFT_VERSION, Voter
from quorate.rpc.convert_raft import (
    at_least_0,
    at_most,
    cluster_of,
    endpoints_of,
    error_of,
    key_of,
    leader_of,
    pb_endpoints,
    pb_leader,
    versions_of,
)
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb

if TYPE_CHECKING:
    from quorate.records.ids import ReplicaKey


FEATURES_MAX: Final = 1000


def describe_response(value: pb.DescribeQuorumResponse) -> m.DescribeQuorumResponse:
    return m.DescribeQuorumResponse(
        error_of(value.error_code),
        leader_of(value.current_leader),
        Offset(value.high_watermark) if value.HasField("high_watermark") else None,
        tuple(_state(state) for state in value.current_voters),
        tuple(_state(state) for state in value.observers),
        Millis(value.now_ms),
        tuple(value.remarks),
        value.kraft_version,
        _change(value.uncommitted_voter_change)
        if value.HasField("uncommitted_voter_change")
        else None,
        tuple(_key(key, "decommissioned") for key in value.decommissioned),
        leader_of(value.last_leader) if value.HasField("last_leader") else None,
        tuple(m.Heard(NodeId(h.replica_id), Millis(h.last_heard_ms)) for h in value.heard),
    )


def pb_describe_response(value: m.DescribeQuorumResponse) -> pb.DescribeQuorumResponse:
    return pb.DescribeQuorumResponse(
        error_code=value.error,
        current_leader=pb_leader(value.leader),
        high_watermark=value.high_watermark,
        current_voters=[_pb_state(state) for state in value.voters],
        observers=[_pb_state(state) for state in value.observers],
        now_ms=value.now_ms,
        remarks=value.remarks,
        kraft_version=value.kraft_version,
        uncommitted_voter_change=_pb_change(value.uncommitted_voter_change),
        decommissioned=[_pb_key(key) for key in value.decommissioned],
        last_leader=pb_leader(value.last_leader) if value.last_leader is not None else None,
        heard=[pb.Heard(replica_id=h.node_id, last_heard_ms=h.at_ms) for h in value.heard],
    )


def _key(value: pb.ReplicaKey, field: str) -> ReplicaKey:
    directory = value.directory_id if value.HasField("directory_id") else None
    return key_of(value.id, directory, field)


def _pb_key(key: ReplicaKey) -> pb.ReplicaKey:
    return pb.ReplicaKey(id=key.node_id, directory_id=key.directory_id)


def _change(value: pb.VoterChange) -> m.VoterChange:
    voter = Voter(_key(value.voter, "voter"), endpoints_of(value.endpoints, "endpoints"))
    return m.VoterChange(m.ChangeKind(value.kind), voter)


def _pb_change(value: m.VoterChange | None) -> pb.VoterChange | None:
    if value is None:
        return None
    voter = value.voter
    return pb.VoterChange(
        kind=value.kind.value, voter=_pb_key(voter.key), endpoints=pb_endpoints(voter.endpoints)
    )


def _reason(name: str) -> m.Reason | None:
    """A reason of a later release is still a refusal: its message says why."""
    return m.Reason(name) if name in {reason.value for reason in m.Reason} else None


def _state(value: pb.ReplicaState) -> m.ReplicaState:
    directory = value.replica_directory_id if value.HasField("replica_directory_id") else None
    fetched = value.last_fetch_ms if value.HasField("last_fetch_ms") else None
    caught_up = value.last_caught_up_ms if value.HasField("last_caught_up_ms") else None
    return m.ReplicaState(
        key_of(value.replica_id, directory, "replica"),
        Offset(value.log_end_offset) if value.HasField("log_end_offset") else None,
        Millis(fetched) if fetched is not None else None,
        Millis(caught_up) if caught_up is not None else None,
        endpoints_of(value.endpoints, "endpoints"),
        _reason(value.obstacle),
        value.obstacle_text,
    )


def _pb_state(value: m.ReplicaState) -> pb.ReplicaState:
    return pb.ReplicaState(
        replica_id=value.key.node_id,
        replica_directory_id=value.key.directory_id,
        log_end_offset=value.log_end_offset,
        last_fetch_ms=value.last_fetch_ms,
        last_caught_up_ms=value.last_caught_up_ms,
        endpoints=pb_endpoints(value.endpoints),
        obstacle=value.obstacle.value if value.obstacle is not None else "",
        obstacle_text=value.obstacle_text,
    )


def api_versions_response(value: pb.ApiVersionsResponse) -> m.ApiVersionsResponse:
    at_most(value.supported_features, FEATURES_MAX, "supported_features")
    ranges = {feature.name: feature for feature in value.supported_features}
    feature = ranges.get(KRAFT_VERSION, pb.SupportedFeature())
    return m.ApiVersionsResponse(
        error_of(value.error_code),
        cluster_of(value.cluster_id),
        _key(value.node, "node"),
        *versions_of(feature.min_version, feature.max_version, KRAFT_VERSION),
    )


def pb_api_versions_response(
    value: m.ApiVersionsResponse, *, software_version: str
) -> pb.ApiVersionsResponse:
    feature = pb.SupportedFeature(
        name=KRAFT_VERSION,
        min_version=value.kraft_version_min,
        max_version=value.kraft_version_max,
    )
    return pb.ApiVersionsResponse(
        error_code=value.error,
        cluster_id=value.cluster_id,
        node=_pb_key(value.key),
        software_version=software_version,
        supported_features=[feature],
    )


AnyMembershipResponse: TypeAlias = (
    pb.AddRaftVoterResponse
    | pb.RemoveRaftVoterResponse
    | pb.UpdateRaftVoterResponse
    | pb.UpdateFeaturesResponse
    | pb.TransferLeadershipResponse
    | pb.TakeLeaveResponse
)


def membership_response(value: AnyMembershipResponse) -> m.MembershipResponse:
    return m.MembershipResponse(
        error_of(value.error_code),
        value.error_message,
        leader_of(value.current_leader),
        _reason(value.reason),
        tuple(sorted(value.metadata.items())),
    )


def membership_fields(value: m.MembershipResponse) -> dict[str, Any]:
    """The fields that the six answers share."""
    return {
        "error_code": int(value.error),
        "error_message": value.message,
        "current_leader": pb_leader(value.leader),
        "reason": value.reason.value if value.reason is not None else "",
        "metadata": dict(value.metadata),
    }


def add_voter(value: pb.AddRaftVoterRequest) -> m.AddRaftVoterRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.AddRaftVoterRequest(
        cluster_of(value.cluster_id),
        key_of(value.voter_id, directory, "voter"),
        endpoints_of(value.listeners, "listeners"),
        Millis(at_least_0(value.timeout_ms, "timeout_ms")),
        value.ack_when_committed,
        value.force,
        value.auto_join,
    )


def remove_voter(value: pb.RemoveRaftVoterRequest) -> m.RemoveRaftVoterRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.RemoveRaftVoterRequest(
        cluster_of(value.cluster_id),
        key_of(value.voter_id, directory, "voter"),
        Millis(at_least_0(value.timeout_ms, "timeout_ms")),
        value.force,
        value.auto_join,
        value.scaled_away,
    )


def pb_add_voter(value: m.AddRaftVoterRequest) -> pb.AddRaftVoterRequest:
    return pb.AddRaftVoterRequest(
        cluster_id=value.cluster_id,
        timeout_ms=value.timeout_ms,
        voter_id=value.voter.node_id,
        voter_directory_id=value.voter.directory_id,
        listeners=pb_endpoints(value.listeners),
        ack_when_committed=value.ack_when_committed,
        force=value.force,
        auto_join=value.auto_join,
    )


def pb_remove_voter(value: m.RemoveRaftVoterRequest) -> pb.RemoveRaftVoterRequest:
    return pb.RemoveRaftVoterRequest(
        cluster_id=value.cluster_id,
        timeout_ms=value.timeout_ms,
        voter_id=value.voter.node_id,
        voter_directory_id=value.voter.directory_id,
        force=value.force,
        auto_join=value.auto_join,
        scaled_away=value.scaled_away,
    )


def pb_update_voter(value: m.UpdateRaftVoterRequest) -> pb.UpdateRaftVoterRequest:
    return pb.UpdateRaftVoterRequest(**fields_to_update(value))


def pb_update_features(value: m.UpdateFeaturesRequest) -> pb.UpdateFeaturesRequest:
    return pb.UpdateFeaturesRequest(**fields_to_upgrade(value))


def pb_transfer_leadership(value: m.TransferLeadershipRequest) -> pb.TransferLeadershipRequest:
    return pb.TransferLeadershipRequest(**fields_to_transfer(value))


def pb_take_leave(value: m.TakeLeaveRequest) -> pb.TakeLeaveRequest:
    return pb.TakeLeaveRequest(
        cluster_id=value.cluster_id,
        voter_id=value.voter.node_id,
        voter_directory_id=value.voter.directory_id,
    )


# These requests have the same fields in the admin API.


def fields_to_update(value: m.UpdateRaftVoterRequest) -> dict[str, Any]:
    return {
        "cluster_id": value.cluster_id,
        "current_leader_epoch": value.current_leader_epoch,
        "voter_id": value.voter.node_id,
        "voter_directory_id": value.voter.directory_id,
        "listeners": pb_endpoints(value.listeners),
        "k_raft_version_feature": pb.KRaftVersionFeature(
            min_supported_version=value.kraft_version_min,
            max_supported_version=value.kraft_version_max,
        ),
    }


def fields_to_upgrade(value: m.UpdateFeaturesRequest) -> dict[str, Any]:
    update = pb.FeatureUpdate(feature=KRAFT_VERSION, max_version_level=value.kraft_version)
    return {"feature_updates": [update], "validate_only": value.validate_only}


def fields_to_transfer(value: m.TransferLeadershipRequest) -> dict[str, Any]:
    return {
        "cluster_id": value.cluster_id,
        "voter_id": value.to.node_id,
        "voter_directory_id": value.to.directory_id,
    }


def update_voter(value: pb.UpdateRaftVoterRequest) -> m.UpdateRaftVoterRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.UpdateRaftVoterRequest(
        cluster_of(value.cluster_id),
        Epoch(at_least_0(value.current_leader_epoch, "current_leader_epoch")),
        key_of(value.voter_id, directory, "voter"),
        endpoints_of(value.listeners, "listeners"),
        *feature_of(value.k_raft_version_feature),
    )


def feature_of(value: pb.KRaftVersionFeature) -> tuple[int, int]:
    low, high = value.min_supported_version, value.max_supported_version
    return versions_of(low, high, "k_raft_version_feature")


def update_features(value: pb.UpdateFeaturesRequest) -> m.UpdateFeaturesRequest:
    at_most(value.feature_updates, FEATURES_MAX, "feature_updates")
    levels = {update.feature: update.max_version_level for update in value.feature_updates}
    if list(levels) != [KRAFT_VERSION]:
        raise ValueError(f"feature_updates: {KRAFT_VERSION} is the one feature of this service")
    return m.UpdateFeaturesRequest(levels[KRAFT_VERSION], value.validate_only)


def transfer_leadership(value: pb.TransferLeadershipRequest) -> m.TransferLeadershipRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.TransferLeadershipRequest(
        cluster_of(value.cluster_id), key_of(value.voter_id, directory, "voter")
    )


def take_leave(value: pb.TakeLeaveRequest) -> m.TakeLeaveRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.TakeLeaveRequest(
        cluster_of(value.cluster_id), key_of(value.voter_id, directory, "voter")
    )
