"""Descriptions of small quorums, as their leader gives them."""

from __future__ import annotations

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Millis, NodeId, Offset
from tests.unit.raft import cores

NOW = Millis(10_000)


def state(node_id: int, end: int | None = 100) -> m.ReplicaState:
    """A replica that fetches, unless it has no end."""
    moment = None if end is None else NOW
    offset = None if end is None else Offset(end)
    return m.ReplicaState(
        key=cores.key(node_id),
        log_end_offset=offset,
        last_fetch_ms=moment,
        last_caught_up_ms=moment,
        endpoints=cores.endpoints(node_id),
    )


def quorum(
    *voters: m.ReplicaState,
    leader: int = 1,
    observers: tuple[m.ReplicaState, ...] = (),
    pending: m.VoterChange | None = None,
    high_watermark: int | None = 100,
    kraft_version: int = 1,
) -> m.DescribeQuorumResponse:
    """The quorum as the leader of epoch 5 reports it; by default the voters are 1 to 3."""
    return m.DescribeQuorumResponse(
        error=ErrorCode.NONE,
        leader=m.LeaderInfo(NodeId(leader), Epoch(5)),
        high_watermark=None if high_watermark is None else Offset(high_watermark),
        voters=voters or (state(1), state(2), state(3)),
        observers=observers,
        now_ms=NOW,
        kraft_version=kraft_version,
        uncommitted_voter_change=pending,
    )
