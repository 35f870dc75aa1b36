"""Linearizable reads: confirms leadership by rounds echoed in Fetch requests (ReadIndex).

A Fetch that arrives after a read began may have been sent before it, by a voter that has since
elected another leader. So every Fetch response has a round number, every Fetch echoes the newest
round that its replica received, and a read counts only echoes of a round that had not been sent to
any replica when the read began (rule `linearizable_reads`, docs/decisions/0002-read-rounds.md).
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from quorate.raft.messages import ReadResponse
from quorate.raft.roles import Leader
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.records.ids import ReplicaKey, ReplyToken


class ReadIndex:
    """Pending linearizable reads of one replica."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica

    def begin(self, token: ReplyToken) -> bool:
        """Start a read; True if the voters' parked Fetches must be answered for its round."""
        replica = self.replica
        role = replica.role
        if not isinstance(role, Leader):
            replica.out.reply(
                token, ReadResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, replica.leader_info)
            )
            return False
        role.reads[token] = role.begin_round()
        self._answer_confirmed(role)
        return bool(role.reads)

    def confirm(self, role: Leader, voter: ReplicaKey, read_round: int) -> None:
        """Record an echo of `read_round`: the voter followed this leader after it was sent."""
        if not 0 < read_round <= role.read_round:
            return
        if read_round > role.read_rounds_echoed.get(voter, 0):
            role.read_rounds_echoed[voter] = read_round
            self._answer_confirmed(role)

    def needed_round(self, role: Leader) -> int:
        """The newest round that a read, or a voter change, waits for; 0 without any."""
        newest = next(reversed(role.reads.values())) if role.reads else 0
        if role.pending is not None:
            newest = max(newest, role.pending.read_round)
        return newest

    def committed(self, role: Leader) -> None:
        """Answer reads after a commit: reads at a new leader wait for one in its epoch."""
        self._answer_confirmed(role)

    def drop(self, role: Leader, token: ReplyToken) -> None:
        """Drop a read whose caller has disconnected."""
        role.reads.pop(token, None)

    def confirmed_round(self, role: Leader) -> int:
        """The newest round that a majority has echoed; a leader that is a voter counts itself."""
        replica = self.replica
        own = replica.node_id if replica.is_voter else None
        rounds = [
            role.read_round
            if voter.key.node_id == own
            else role.read_rounds_echoed.get(voter.key, 0)
            for voter in replica.voters
        ]
        rounds.sort(reverse=True)
        return rounds[replica.voters.majority - 1] if rounds else 0

    def _answer_confirmed(self, role: Leader) -> None:
        replica = self.replica
        if not role.reads or not replica.commit_state.has_committed_in_epoch(role):
            return
        confirmed = self.confirmed_round(role)
        ready = list(takewhile(lambda token: role.reads[token] <= confirmed, role.reads))
        if not ready:
            return
        response = ReadResponse(ErrorCode.NONE, replica.leader_info, replica.high_watermark)
        for token in ready:
            del role.reads[token]
            replica.out.reply(token, response)
