"""Decides if the replica that answers is the one that was addressed.

An address may lead to another replica: DNS is stale after pods got new addresses, or a name is
misconfigured. Every request is answered there, so the connection would be kept forever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.messages import (
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchResponse,
    FetchSnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import ReplicaKey
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.raft.api import Peer
    from quorate.raft.messages import PeerRequest, PeerResponse
    from quorate.records.ids import ClusterId

# Errors that only the leader returns.
_OF_THE_LEADER: Final = (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)


@value_type
class ReplicaIdentity:
    """One replica of one cluster."""

    cluster_id: ClusterId
    key: ReplicaKey


def needs_check(request: PeerRequest, answer: PeerResponse) -> bool:
    """True if another replica could have given this answer.

    A replica accepts EndQuorumEpoch even if it was for another one; every other request that it
    accepts was for itself.
    """
    is_accepted = answer.error is ErrorCode.NONE or answer.error in _OF_THE_LEADER
    return isinstance(request, EndQuorumEpochRequest) or not is_accepted


def addressed(peer: Peer, request: PeerRequest) -> ReplicaKey:
    """The replica that a request is for, with its directory id if the request has it."""
    if isinstance(request, VoteRequest | BeginQuorumEpochRequest):
        return request.voter
    return ReplicaKey(peer.node_id)


def identity_problem(
    wanted: ReplicaKey, found: ApiVersionsResponse, own: ReplicaIdentity
) -> str | None:
    """Describes the replica that was found instead of the addressed one; None if they are the same.

    A negative node id stands for a bootstrap server: any other replica of the cluster.
    """
    is_server = wanted.node_id < 0
    meant = "another controller" if is_server else f"node {wanted}"
    if found.cluster_id != own.cluster_id:
        return (
            f"node {found.key} of cluster {found.cluster_id}, not {meant} of cluster "
            f"{own.cluster_id}"
        )
    if found.key == own.key:
        return f"this process, node {found.key}, not {meant}"
    if is_server or wanted in (found.key, ReplicaKey(found.key.node_id)):
        return None
    return f"node {found.key}, not {meant}"


def outcome(request: PeerRequest, answer: PeerResponse) -> str:
    """The answer as text, to help operators find the reason for a missing leader."""
    name = type(request).__name__.removesuffix("Request")
    if isinstance(answer, VoteResponse) and answer.error is ErrorCode.NONE:
        reason = "" if answer.refusal is None else f" ({answer.refusal.value})"
        return f"{'grants' if answer.vote_granted else 'rejects'} a vote{reason}"
    text = f"answers {name} with {answer.error.name}"
    if isinstance(answer, FetchResponse | FetchSnapshotResponse):
        leader = answer.leader
        known = "no leader" if leader.leader_id is None else f"leader {leader.leader_id}"
        return f"{text} and names {known} in epoch {leader.epoch}"
    return text
