"""Mutated peer requests that no correct replica may act on.

A replica must accept a peer's report of its log end, of a new epoch and of its leader: no quorum
survives a peer that forges these. So these requests come from a node that is unknown to the quorum,
or are about past epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    VoteRequest,
)
from quorate.records.ids import Epoch, Millis, Offset, OffsetAndEpoch
from quorate.rpc.convert import raft as convert
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.fuzz.invalid_requests import NOBODY
from quorate.sim.fuzz.message_mutation import mutated, received

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.messages import Request
    from quorate.sim.randomness import RandomSource
    from quorate.sim.views import NodeView

_WAIT_MS: Final = Millis(500)
_BYTES: Final = 64 * 1024


def mutated_peer_request(random_source: RandomSource, node: NodeView) -> Request | None:
    """The mutated request to this node; None if it is rejected, or no quorum could survive it."""
    epoch = Epoch(0) if node.progress is None else node.progress.epoch
    message, read = random_source.choice(_sound(random_source, node, epoch))
    request: Request | None = received(mutated(message, random_source), read)
    return request if request is not None and _is_harmless(request, epoch) else None


def _sound(
    random_source: RandomSource, node: NodeView, epoch: Epoch
) -> list[tuple[Any, Callable[[Any], Any]]]:
    """One valid request of each kind, as protobuf, with the function that decodes it."""
    before, end = Epoch(max(epoch - 1, 0)), node.log.end
    nothing = OffsetAndEpoch(epoch=Epoch(0), offset=Offset(0))
    vote = VoteRequest(
        cluster_id=CLUSTER_ID,
        voter=node.key,
        replica=NOBODY,
        replica_epoch=random_source.choice((epoch, before)),
        last=end,
        pre_vote=random_source.chance(0.5),
        replica_endpoints=node.endpoints,
    )
    begin = BeginQuorumEpochRequest(CLUSTER_ID, node.key, NOBODY.node_id, before, node.endpoints)
    ends = EndQuorumEpochRequest(CLUSTER_ID, NOBODY.node_id, before, (node.key, NOBODY))
    fetch = FetchRequest(
        cluster_id=CLUSTER_ID,
        replica=random_source.choice((NOBODY, None)),
        current_leader_epoch=epoch,
        fetch_offset=random_source.choice((end.offset, Offset(0))),
        last_fetched_epoch=end.epoch,
        max_wait_ms=_WAIT_MS,
        max_bytes=_BYTES,
        replica_endpoints=node.endpoints,
    )
    snapshot = FetchSnapshotRequest(
        cluster_id=CLUSTER_ID,
        replica=random_source.choice((NOBODY, None)),
        current_leader_epoch=epoch,
        snapshot_id=random_source.choice((end, *node.checked, nothing)),
        position=0,
        max_bytes=_BYTES,
    )
    return [
        (convert.pb_vote_request(vote), convert.vote_request),
        (convert.pb_begin_request(begin), convert.begin_request),
        (convert.pb_end_request(ends), convert.end_request),
        (convert.pb_fetch_request(fetch), convert.fetch_request),
        (convert.pb_fetch_snapshot_request(snapshot), convert.fetch_snapshot_request),
    ]


def _is_harmless(request: Request, epoch: Epoch) -> bool:
    match request:
        case VoteRequest():
            return request.replica_epoch < epoch or (
                request.pre_vote and request.replica_epoch == epoch
            )
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return request.cluster_id != CLUSTER_ID or request.leader_epoch < epoch
        case FetchRequest() | FetchSnapshotRequest():
            return request.replica is None or request.replica.node_id == NOBODY.node_id
    return False
