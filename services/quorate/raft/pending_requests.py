"""Completes a committed voter change, and fails every pending request when leadership ends.

No parked Fetch, read, voter change or held proposal outlives the leadership in which it arrived
(docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.membership.rejection import Rejection
from quorate.raft.messages import (
    FetchResponse,
    LeaderInfo,
    MembershipResponse,
    ProposalResponse,
    ReadResponse,
    Reason,
)
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Leader, PendingChange, PendingTransfer


def complete_committed_change(replica: Replica, role: Leader) -> None:
    """Complete the pending change if the high watermark has passed it."""
    pending = role.pending
    if pending is None or pending.offset is None or pending.offset >= replica.high_watermark:
        return
    role.pending = None
    text = f"{pending.what}: committed"
    replica.out.note(
        TraceEventKind.CHANGE_COMMITTED, text, **pending.trace_fields, offset=pending.offset
    )
    replica.out.reply(pending.token, MembershipResponse(ErrorCode.NONE, "", replica.leader_info))


def fail_pending_requests(replica: Replica, leader: Leader) -> None:
    """Answer all requests that are pending at this leader, which no longer leads."""
    info = replica.leader_info
    if replica.election.leader_id == replica.node_id:
        info = LeaderInfo(None, replica.epoch)
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for parked in leader.parked:
        replica.out.reply(parked.token, FetchResponse(error=error, leader=info))
    for token in leader.reads:
        replica.out.reply(token, ReadResponse(error, info))
    if leader.pending is not None:
        _end_change(replica, leader.pending, info)
    if leader.transfer is not None:
        _end_hand_over(replica, leader.transfer, info)


def _end_change(replica: Replica, pending: PendingChange, info: LeaderInfo) -> None:
    is_open = pending.offset is not None
    outcome = "it may still be committed" if is_open else "nothing was changed"
    text = f"{pending.what}: leadership was lost meanwhile; {outcome}"
    obstacle = Rejection(ErrorCode.NOT_LEADER_OR_FOLLOWER, Reason.LEADERSHIP_LOST, text)
    replica.out.reply(pending.token, obstacle.response(info))


def _end_hand_over(replica: Replica, hand_over: PendingTransfer, info: LeaderInfo) -> None:
    """End a transfer with leadership; its held proposals were never appended."""
    replica.out.reply(hand_over.token, MembershipResponse(ErrorCode.NONE, "", info))
    for event in hand_over.held_proposals:
        refused = ProposalResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=info)
        replica.out.reply(event.token, refused)
