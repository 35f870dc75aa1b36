"""Current reads: answered once a majority is known to follow this leader since the read began.

Rule 19, made exact: a Fetch that arrives after the read began may have been sent before
it, by a voter that has since elected somebody else. So every Fetch answer carries a round, every
Fetch echoes the newest one that its replica saw, and a read counts only echoes of a round that was
not yet sent to anybody when it began (docs/decisions/0002-read-rounds.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import ReadResponse
from quorate.raft.roles import Leader, PendingRead
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.records.ids import NodeId, ReplyToken


class Reads:
    """Pending current reads, for one replica."""

    def __init__(self, replica: Replica) -> None:
        self.r = replica

    def begin(self, token: ReplyToken) -> bool:
        """Take a read; True when the voters must be heard from, so their fetches be released."""
        r = self.r
        role = r.role
        if not isinstance(role, Leader):
            r.reply(token, ReadResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, r.leader_info))
            return False
        if role.read_round_is_sent or role.read_round == 0:
            role.read_round += 1
            role.read_round_is_sent = False
        role.reads.append(PendingRead(token, role.read_round))
        self._answer_confirmed(role)
        return bool(role.reads)

    def confirm(self, role: Leader, voter: NodeId, read_round: int) -> None:
        """A voter's Fetch echoes `read_round`: it followed this leader after that was sent."""
        if not role.reads:
            return
        for read in role.reads:
            if read.round_number <= read_round:
                read.confirmed[voter] = None
        self._answer_confirmed(role)

    def needs_more_than(self, role: Leader, read_round: int) -> bool:
        """Whether a read waits for a round newer than this one."""
        return any(read.round_number > read_round for read in role.reads)

    def committed(self, role: Leader) -> None:
        """The high watermark rose: a new leader's reads wait for its epoch to be committed."""
        if role.reads:
            self._answer_confirmed(role)

    def drop(self, role: Leader, token: ReplyToken) -> None:
        """Whoever asked is gone."""
        role.reads = [read for read in role.reads if read.token != token]

    def _answer_confirmed(self, role: Leader) -> None:
        r = self.r
        if r.high_watermark <= role.epoch_start:
            return
        own = 1 if r.is_voter else 0
        waiting = []
        for read in role.reads:
            voters = sum(1 for v in read.confirmed if v != r.node_id and r.voters.by_id(v))
            if voters + own >= r.voters.majority:
                r.reply(read.token, ReadResponse(ErrorCode.NONE, r.leader_info, r.high_watermark))
            else:
                waiting.append(read)
        role.reads = waiting
