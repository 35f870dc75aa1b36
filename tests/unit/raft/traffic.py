"""Requests and answers of cores, whole, as they stand among the effects of an Update."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.raft import api
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import CallId, Epoch, Millis, NodeId, Offset, ReplyToken
from tests.unit.raft import cores

if TYPE_CHECKING:
    from quorate.raft.identity.voter_set_mark import VotersMark


def fetch_sent(
    call: int,
    offset: int,
    last_epoch: int,
    *,
    node_id: int = 2,
    to: int = 1,
    epoch: int = 1,
    high_watermark: int = -1,
    voters_at: VotersMark | None = None,
) -> api.SendRequest:
    """The Fetch of a follower to its leader for what follows its log."""
    settings = cores.config(node_id)
    request = m.FetchRequest(
        cluster_id=cores.CLUSTER,
        replica=cores.key(node_id),
        current_leader_epoch=Epoch(epoch),
        fetch_offset=Offset(offset),
        last_fetched_epoch=Epoch(last_epoch),
        max_wait_ms=settings.fetch_max_wait_ms,
        max_bytes=settings.fetch_max_bytes,
        high_watermark=Offset(high_watermark),
        replica_endpoints=cores.endpoints(node_id),
        voters_at=voters_at,
    )
    return api.SendRequest(CallId(call), cores.peer(to), request)


def discovery_sent(
    call: int, offset: int, last_epoch: int, *, node_id: int, to: int, epoch: int
) -> api.SendRequest:
    """The request of a replica that looks for a leader: a Fetch without a wait time."""
    sent = fetch_sent(call, offset, last_epoch, node_id=node_id, to=to, epoch=epoch)
    assert isinstance(sent.request, m.FetchRequest)
    return replace(sent, request=replace(sent.request, max_wait_ms=Millis(0)))


def begin_sent(call: int, to: int, *, leader_id: int = 1, epoch: int = 1) -> api.SendRequest:
    """The notice of a leader to a voter that it leads."""
    request = m.BeginQuorumEpochRequest(
        cores.CLUSTER, cores.key(to), NodeId(leader_id), Epoch(epoch), cores.endpoints(leader_id)
    )
    return api.SendRequest(CallId(call), cores.peer(to), request)


def end_sent(call: int, to: int, *preferred: int) -> api.SendRequest:
    """The notice of epoch 1's leader that it resigned, with the voters to campaign, best first."""
    request = m.EndQuorumEpochRequest(
        cores.CLUSTER, NodeId(1), Epoch(1), tuple(map(cores.key, preferred)), cores.endpoints(1)
    )
    return api.SendRequest(CallId(call), cores.peer(to), request)


def fetch_reply(
    token: int,
    *,
    records: tuple[int, int] | None = None,
    high_watermark: int = -1,
    **parts: object,
) -> api.SendReply:
    """The response of the leader of epoch 1 to a Fetch of `fetch`."""
    slice_ = None
    if records is not None:
        start, until = map(Offset, records)
        slice_ = m.LogRange(start=start, end=until, bytes_max=1024)
    response = cores.fetch_answer(
        records=slice_,
        high_watermark=Offset(high_watermark),
        log_start_offset=Offset(0),
        **parts,
    )
    return api.SendReply(ReplyToken(token), response)


def fetch_refusal(token: int, error: ErrorCode) -> api.SendReply:
    """The response of the leader of epoch 1 to a Fetch that it does not serve."""
    return api.SendReply(ReplyToken(token), m.FetchResponse(error=error, leader=cores.LEADER))


def fetch_given_up(token: int) -> api.SendReply:
    """The response to a Fetch parked at the leader of epoch 1 when that leader resigns."""
    nobody = m.LeaderInfo(None, Epoch(1))
    response = m.FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=nobody)
    return api.SendReply(ReplyToken(token), response)
