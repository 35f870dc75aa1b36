"""Corrupts responses at random on their way, as the seed's options say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft.api import CallFailure
from quorate.raft.messages import FetchedBatches, FetchResponse
from quorate.raft.replication.batch_info import batch_infos
from quorate.sim.draws import SALTS, Draws
from quorate.sim.fuzz.peer_responses import spoilt

if TYPE_CHECKING:
    from quorate.raft.messages import PeerResponse
    from quorate.records.ids import NodeId
    from quorate.sim.interfaces import WorldAround


def on_its_way(
    world: WorldAround, response: PeerResponse, source: NodeId, target: NodeId
) -> PeerResponse | CallFailure:
    """The result of production's client for the response that arrives."""
    rate = world.options.peers.spoilt_answer_rate
    if world.is_calm or not world.fates.happens(rate, "spoilt answers", source, target):
        return _parsed(response)
    salt = int(world.fates.of("spoilt answers", source, target).random() * SALTS)
    garbled = spoilt(response, world.nodes[target], Draws(salt, "answer"))
    world.remark(f"an answer of node {source} to node {target} is garbled: {_told(garbled)}")
    try:
        return _parsed(garbled)
    except ValueError:
        return CallFailure.UNREADABLE


def _parsed(response: PeerResponse) -> PeerResponse:
    """As the client of production hands it to the core: with what the batches are."""
    match response:
        case FetchResponse(records=FetchedBatches(data=data)):
            return replace(response, records=batch_infos(data) if data else None)
    return response


def _told(response: PeerResponse) -> str:
    """Without the bytes."""
    match response:
        case FetchResponse(records=FetchedBatches()):
            return str(replace(response, records=None))
    return str(response)[:300]
