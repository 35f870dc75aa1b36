"""DescribeQuorum and the membership requests, from and to protobuf."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.records.ids import ClusterId, Epoch, Millis, Offset
from quorate.rpc.convert_raft import (
    at_least_0,
    endpoints_of,
    error_of,
    key_of,
    leader_of,
    pb_endpoints,
    pb_leader,
)
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb

KRAFT_VERSION = "kraft.version"


def describe_response(value: pb.DescribeQuorumResponse) -> m.DescribeQuorumResponse:
    return m.DescribeQuorumResponse(
        error_of(value.error_code),
        leader_of(value.current_leader),
        Offset(value.high_watermark) if value.HasField("high_watermark") else None,
        tuple(_state(state) for state in value.current_voters),
        tuple(_state(state) for state in value.observers),
        Millis(value.now_ms),
        tuple(value.remarks),
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
    )


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
    )


def _pb_state(value: m.ReplicaState) -> pb.ReplicaState:
    return pb.ReplicaState(
        replica_id=value.key.node_id,
        replica_directory_id=value.key.directory_id,
        log_end_offset=value.log_end_offset,
        last_fetch_ms=value.last_fetch_ms,
        last_caught_up_ms=value.last_caught_up_ms,
        endpoints=pb_endpoints(value.endpoints),
    )


def add_voter(value: pb.AddRaftVoterRequest) -> m.AddRaftVoterRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.AddRaftVoterRequest(
        ClusterId(value.cluster_id),
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
        ClusterId(value.cluster_id),
        key_of(value.voter_id, directory, "voter"),
        Millis(at_least_0(value.timeout_ms, "timeout_ms")),
        value.force,
    )


def update_voter(value: pb.UpdateRaftVoterRequest) -> m.UpdateRaftVoterRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.UpdateRaftVoterRequest(
        ClusterId(value.cluster_id),
        Epoch(at_least_0(value.current_leader_epoch, "current_leader_epoch")),
        key_of(value.voter_id, directory, "voter"),
        endpoints_of(value.listeners, "listeners"),
        value.k_raft_version_feature.min_supported_version,
        value.k_raft_version_feature.max_supported_version,
    )


def update_features(value: pb.UpdateFeaturesRequest) -> m.UpdateFeaturesRequest:
    levels = {update.feature: update.max_version_level for update in value.feature_updates}
    if list(levels) != [KRAFT_VERSION]:
        raise ValueError(f"feature_updates: {KRAFT_VERSION} is the one feature of this service")
    return m.UpdateFeaturesRequest(levels[KRAFT_VERSION], value.validate_only)


def transfer_leadership(value: pb.TransferLeadershipRequest) -> m.TransferLeadershipRequest:
    directory = value.voter_directory_id if value.HasField("voter_directory_id") else None
    return m.TransferLeadershipRequest(
        ClusterId(value.cluster_id), key_of(value.voter_id, directory, "voter")
    )
