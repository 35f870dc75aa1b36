"""DescribeQuorum and ApiVersions from and to protobuf."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.raft.last_message import Heard
from quorate.records.ids import Millis, NodeId, Offset
from quorate.records.voters import KRAFT_VERSION, Voter
from quorate.rpc.convert.membership import FEATURES_MAX, key_in, pb_key, reason_of
from quorate.rpc.convert.raft import (
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


def describe_response(value: pb.DescribeQuorumResponse) -> m.DescribeQuorumResponse:
    return m.DescribeQuorumResponse(
        error=error_of(value.error_code),
        leader=leader_of(value.current_leader),
        high_watermark=Offset(value.high_watermark) if value.HasField("high_watermark") else None,
        voters=tuple(_state(state) for state in value.current_voters),
        observers=tuple(_state(state) for state in value.observers),
        now_ms=Millis(value.now_ms),
        remarks=tuple(value.remarks),
        kraft_version=value.kraft_version,
        uncommitted_voter_change=_change(value.uncommitted_voter_change)
        if value.HasField("uncommitted_voter_change")
        else None,
        decommissioned=tuple(key_in(key, "decommissioned") for key in value.decommissioned),
        last_leader=leader_of(value.last_leader) if value.HasField("last_leader") else None,
        refused=tuple(_state(state) for state in value.refused),
        heard=tuple(Heard(NodeId(h.replica_id), Millis(h.last_heard_ms)) for h in value.heard),
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
        decommissioned=[pb_key(key) for key in value.decommissioned],
        last_leader=pb_leader(value.last_leader) if value.last_leader is not None else None,
        refused=[_pb_state(state) for state in value.refused],
        heard=[pb.Heard(replica_id=h.node_id, last_heard_ms=h.at_ms) for h in value.heard],
    )


def _change(value: pb.VoterChange) -> m.VoterChange:
    voter = Voter(key_in(value.voter), endpoints_of(value.endpoints, "endpoints"))
    return m.VoterChange(m.ChangeKind(value.kind), voter)


def _pb_change(value: m.VoterChange | None) -> pb.VoterChange | None:
    if value is None:
        return None
    voter = value.voter
    return pb.VoterChange(
        kind=value.kind.value, voter=pb_key(voter.key), endpoints=pb_endpoints(voter.endpoints)
    )


def _state(value: pb.ReplicaState) -> m.ReplicaState:
    directory = value.replica_directory_id if value.HasField("replica_directory_id") else None
    fetched = value.last_fetch_ms if value.HasField("last_fetch_ms") else None
    caught_up = value.last_caught_up_ms if value.HasField("last_caught_up_ms") else None
    return m.ReplicaState(
        key=key_of(value.replica_id, directory, "replica"),
        log_end_offset=Offset(value.log_end_offset) if value.HasField("log_end_offset") else None,
        last_fetch_ms=Millis(fetched) if fetched is not None else None,
        last_caught_up_ms=Millis(caught_up) if caught_up is not None else None,
        endpoints=endpoints_of(value.endpoints, "endpoints"),
        obstacle=reason_of(value.obstacle),
        obstacle_text=value.obstacle_text,
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
    version_min, version_max = versions_of(feature.min_version, feature.max_version, KRAFT_VERSION)
    return m.ApiVersionsResponse(
        error=error_of(value.error_code),
        cluster_id=cluster_of(value.cluster_id),
        key=key_in(value.node, "node"),
        kraft_version_min=version_min,
        kraft_version_max=version_max,
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
        node=pb_key(value.key),
        software_version=software_version,
        supported_features=[feature],
    )
