"""Responses of a controller of another cluster at one of our addresses.

See rule `no_state_from_rejections`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderInfo,
    VoteRequest,
    VoteResponse,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch

if TYPE_CHECKING:
    from quorate.raft.messages import PeerResponse, Request
    from quorate.sim.views import NodeView

EPOCHS_AHEAD: Final = 1000
ANOTHER_CLUSTER: Final = ErrorCode.INCONSISTENT_CLUSTER_ID


def answer_of_another_cluster(target: NodeView, request: Request) -> PeerResponse | None:
    """The response, with the other cluster's leader and a later epoch; None to disconnect."""
    match request:
        case VoteRequest(replica_epoch=epoch):
            return VoteResponse(ANOTHER_CLUSTER, _leader(target, epoch), vote_granted=True)
        case BeginQuorumEpochRequest(leader_epoch=epoch):
            return BeginQuorumEpochResponse(ANOTHER_CLUSTER, _leader(target, epoch))
        case EndQuorumEpochRequest(leader_epoch=epoch):
            return EndQuorumEpochResponse(ANOTHER_CLUSTER, _leader(target, epoch))
        case FetchRequest(current_leader_epoch=epoch):
            return FetchResponse(error=ANOTHER_CLUSTER, leader=_leader(target, epoch))
        case FetchSnapshotRequest(current_leader_epoch=epoch):
            return FetchSnapshotResponse(error=ANOTHER_CLUSTER, leader=_leader(target, epoch))
    return None


def _leader(target: NodeView, epoch: Epoch) -> LeaderInfo:
    return LeaderInfo(target.node_id, Epoch(epoch + EPOCHS_AHEAD), target.endpoints)
