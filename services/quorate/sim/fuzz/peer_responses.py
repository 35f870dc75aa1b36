"""Corrupt peer responses that the receiver must detect, of peers that are faulty or Byzantine.

Each has an error that its receiver can detect: it names an impossible epoch, contradicts committed
state, fails verification, or answers another request. Claims that a replica must accept from its
leader, such as the committed offset, stay correct: no quorum survives a leader that forges them.
Sources: rules `no_state_from_rejections`, `input_bounds` and `leader_contradiction`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.api import RequestFailure
from quorate.raft.election.epoch_guard import EPOCH_MAX
from quorate.raft.messages import (
    ApiVersionsResponse,
    FetchedBatches,
    FetchResponse,
    FetchSnapshotResponse,
    LeaderInfo,
    MembershipResponse,
    VoteResponse,
)
from quorate.raft.replication.batch_info import batch_infos
from quorate.raft.replication.batch_validation import begins_epoch
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.sim.fuzz.invalid_requests import NOBODY, OTHER_CLUSTER
from quorate.sim.randomness import SALTS, RandomSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.raft.messages import PeerResponse
    from quorate.records.ids import NodeId
    from quorate.sim.interfaces import ClusterInterface
    from quorate.sim.views import NodeView

_FAR: Final = Offset(1 << 40)
_ERRORS: Final = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
)


def corrupt_response(
    response: PeerResponse, receiver: NodeView, random_source: RandomSource
) -> PeerResponse:
    """Corrupt a response in a random way that `receiver` must detect."""
    match response:
        case FetchResponse():
            return _spoilt_fetch(response, receiver, random_source)
        case FetchSnapshotResponse():
            return _spoilt_slice(response, random_source)
        case ApiVersionsResponse():
            return random_source.choice(
                (
                    replace(response, key=NOBODY),
                    replace(response, cluster_id=OTHER_CLUSTER),
                    replace(response, kraft_version_min=0, kraft_version_max=0),
                    replace(response, kraft_version_min=5, kraft_version_max=9),
                    replace(response, error=random_source.choice(_ERRORS)),
                )
            )
        case MembershipResponse():
            return replace(
                response, error=random_source.choice(_ERRORS), leader=_impossible(response.leader)
            )
        case VoteResponse():
            # A response with an error grants nothing.
            spoilt_vote = replace(response, error=random_source.choice(_ERRORS), vote_granted=True)
            return random_source.choice(
                (spoilt_vote, replace(spoilt_vote, leader=_impossible(None)))
            )
    return replace(
        response,
        error=random_source.choice((*_ERRORS, ErrorCode.NONE)),
        leader=_impossible(response.leader),
    )


def _impossible(leader: LeaderInfo | None) -> LeaderInfo:
    """A leader of an epoch that no election has reached."""
    if leader is None:
        return LeaderInfo(NOBODY.node_id, Epoch(EPOCH_MAX))
    return replace(leader, epoch=Epoch(EPOCH_MAX))


def _leader_in(response: FetchResponse) -> tuple[NodeId | None, Epoch]:
    return response.leader.leader_id, response.leader.epoch


def _spoilt_fetch(
    response: FetchResponse, receiver: NodeView, random_source: RandomSource
) -> FetchResponse:
    ways: list[Callable[[FetchResponse], FetchResponse]] = [
        lambda r: replace(r, error=random_source.choice(_ERRORS)),
        lambda r: replace(r, leader=_impossible(r.leader)),
        lambda r: replace(r, log_start_offset=_FAR),
        lambda r: replace(r, high_watermark=Offset(0)),
        lambda r: replace(
            r, records=None, snapshot_id=OffsetAndEpoch(epoch=r.leader.epoch, offset=_FAR)
        ),
    ]
    progress = receiver.progress
    if progress is not None and (progress.leader_id, progress.epoch) == _leader_in(response):
        # The receiver accepts the first leader that is named for an epoch, but no second one.
        ways.append(lambda r: replace(r, leader=replace(r.leader, leader_id=NOBODY.node_id)))
    knows_all = progress is not None and progress.high_watermark == receiver.log.end.offset
    if knows_all and receiver.log.end.offset:
        # Only if the receiver knows that all its records are committed: it must truncate records
        # that may be uncommitted if its leader reports a divergence.
        nothing = OffsetAndEpoch(epoch=Epoch(0), offset=Offset(0))
        ways.append(lambda r: replace(r, records=None, diverging=nothing))
    records = response.records
    if isinstance(records, FetchedBatches) and records.data:
        epochs = (receiver.log.end.epoch, response.leader.epoch)
        flipped = _with_a_flipped_bit(records.data, epochs, random_source)
        ways += [flipped, _from_elsewhere(receiver, random_source)] * 2
    return random_source.choice(ways)(response)


def _with_a_flipped_bit(
    data: bytes, epochs: tuple[Epoch, Epoch], random_source: RandomSource
) -> Callable[[FetchResponse], FetchResponse]:
    """Flip a bit, which the checksum of a batch or a check of its header detects.

    `epochs` are the epoch of the receiver's log end and the leader's epoch.
    """
    flipped = _flipped(data, random_source)
    if _begins_another_epoch(data, flipped, epochs):
        # No checksum covers the epoch of a batch, and the epoch of a first batch cannot be checked
        # in any other way.
        flipped = data[:-1] + bytes((data[-1] ^ 1,))
    return lambda r: r.with_records(flipped)


def _begins_another_epoch(data: bytes, flipped: bytes, epochs: tuple[Epoch, Epoch]) -> bool:
    """True if the flip is undetectable: a valid batch now begins another, possible epoch."""
    last, newest = epochs
    try:
        pairs = zip(batch_infos(data).batches, batch_infos(flipped).batches, strict=True)
    except ValueError:
        return False
    return any(
        before.epoch != after.epoch and begins_epoch(after.control) and last < after.epoch <= newest
        for before, after in pairs
    )


def _from_elsewhere(
    receiver: NodeView, random_source: RandomSource
) -> Callable[[FetchResponse], FetchResponse]:
    """Send records that the receiver already has."""
    entries = receiver.log.entries
    if not entries:
        return lambda r: replace(r, records=None, log_start_offset=_FAR)
    again = random_source.choice(entries).data
    return lambda r: r.with_records(again)


def _spoilt_slice(
    response: FetchSnapshotResponse, random_source: RandomSource
) -> FetchSnapshotResponse:
    ways: list[Callable[[FetchSnapshotResponse], FetchSnapshotResponse]] = [
        lambda r: replace(r, error=random_source.choice(_ERRORS)),
        lambda r: replace(r, leader=_impossible(r.leader)),
        lambda r: replace(r, size_bytes=0),
        lambda r: replace(r, size_bytes=1 << 40),
        lambda r: replace(r, position=r.position + 1),
        lambda r: replace(r, snapshot_id=OffsetAndEpoch(epoch=Epoch(1), offset=_FAR)),
        lambda r: replace(r, snapshot_id=None),
        lambda r: replace(r, chunk=b""),
    ]
    if isinstance(response.chunk, bytes) and response.chunk:
        flipped = _flipped(response.chunk, random_source)
        ways += [lambda r: replace(r, chunk=flipped)] * 3
    return random_source.choice(ways)(response)


def _flipped(data: bytes, random_source: RandomSource) -> bytes:
    at = random_source.between(0, len(data) - 1)
    return data[:at] + bytes((data[at] ^ (1 << random_source.between(0, 7)),)) + data[at + 1 :]


def maybe_corrupt(
    world: ClusterInterface, response: PeerResponse, source: NodeId, target: NodeId
) -> PeerResponse | RequestFailure:
    """The result of the production client for the response, which may be corrupted in transit."""
    rate = world.options.peers.spoilt_answer_rate
    if world.is_calm or not world.random_streams.chance(rate, "spoilt answers", source, target):
        return _parsed(response)
    salt = int(world.random_streams.stream("spoilt answers", source, target).random() * SALTS)
    garbled = corrupt_response(response, world.nodes[target], RandomSource(salt, "answer"))
    world.log(f"an answer of node {source} to node {target} is garbled: {_told(garbled)}")
    try:
        return _parsed(garbled)
    except ValueError:
        return RequestFailure.UNREADABLE


def _parsed(response: PeerResponse) -> PeerResponse:
    """The response as the production client passes it to the core: with parsed batches."""
    match response:
        case FetchResponse(records=FetchedBatches(data=data)):
            return replace(response, records=batch_infos(data) if data else None)
    return response


def _told(response: PeerResponse) -> str:
    """The text of a response without its record bytes."""
    match response:
        case FetchResponse(records=FetchedBatches()):
            return str(replace(response, records=None))
    return str(response)[:300]
