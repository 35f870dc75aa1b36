"""What waits for a leader, and what becomes of it when leadership ends.

No parked Fetch, no read, no change of the voters and no proposal that was held back outlives the
leadership that it was meant for (docs/protocol.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.raft.messages import (
    FetchResponse,
    LeaderInfo,
    MembershipResponse,
    ProposalResponse,
    ReadResponse,
    Reason,
)
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.raft.roles import HandOver, Leader, PendingChange


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a change of the voters may not be: Kafka's code, the reason in one word, a sentence."""

    error: ErrorCode
    reason: Reason
    text: str
    metadata: tuple[tuple[str, str], ...] = ()


def end_waiting(replica: Replica, leader: Leader) -> None:
    """Answer everybody who waits for this leader, which leads no more."""
    info = replica.leader_info
    if replica.election.leader_id == replica.node_id:
        info = LeaderInfo(None, replica.epoch)
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for parked in leader.parked:
        replica.reply(parked.token, FetchResponse(error, info))
    for token in leader.reads:
        replica.reply(token, ReadResponse(error, info))
    if leader.pending is not None:
        _end_change(replica, leader.pending, info)
    if leader.hand_over is not None:
        _end_hand_over(replica, leader.hand_over, info)


def _end_change(replica: Replica, pending: PendingChange, info: LeaderInfo) -> None:
    is_open = pending.offset is not None
    outcome = "it may still be committed" if is_open else "nothing was changed"
    text = f"{pending.what}: leadership was lost meanwhile; {outcome}"
    replica.refuse(
        pending.token,
        Obstacle(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.LEADERSHIP_LOST, text),
        info,
    )


def _end_hand_over(replica: Replica, hand_over: HandOver, info: LeaderInfo) -> None:
    """To lead no more is what a hand-over is about; what it held back was never appended."""
    replica.reply(hand_over.token, MembershipResponse(ErrorCode.NONE, "", info))
    for event in hand_over.held:
        refused = ProposalResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, info)
        replica.reply(event.token, refused)
