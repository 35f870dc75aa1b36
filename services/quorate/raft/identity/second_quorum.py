"""Detects another quorum of the same cluster, in a quorum of several voters.

See rule `sole_voter_conflict`. Every leader of this quorum has all committed records. So a leader
whose log diverges below the high watermark of its follower, or has other voters at the same
position, leads another quorum. Each of the two quorums acknowledges records that the other lacks,
and only an operator knows which one is right. Different voters are detected by the follower, from
the response, or by the leader, which rejects the Fetch.

For some fetch timeouts after the last proof this replica is not ready, and as leader it accepts no
writes. It continues to vote and to lead, so that a single voter of the other quorum learns of its
leader and resigns permanently. One response does not prove it, since it may be damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.trace_events import TraceEventKind
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig
    from quorate.raft.outbox import Outbox
    from quorate.raft.timers import Timers
    from quorate.records.ids import Epoch, Millis, NodeId

# Answers of one leader, in any epochs: two quorums that depose each other start many epochs.
PROOFS: Final = 3
# In fetch timeouts, after the last proof: longer than the two quorums need to depose each other.
MET_FACTOR: Final = 5


@value_type
class _Proof:
    """The proofs from one leader so far, with the epoch and the time of the last one."""

    leader_id: NodeId
    epoch: Epoch
    count: int
    reason: str
    at: Millis


class SecondQuorum:
    """A replica's evidence of another quorum under its cluster id."""

    def __init__(self, config: RaftConfig, timers: Timers, out: Outbox) -> None:
        self._met_ms = config.fetch_timeout_ms * MET_FACTOR
        self._cluster_id = config.cluster_id
        self._timers = timers
        self._out = out
        self._proof: _Proof | None = None
        self._until: Millis | None = None

    @property
    def is_met(self) -> bool:
        """True while there is another quorum, as far as this replica knows."""
        return self._until is not None and self._timers.now < self._until

    def prove(self, leader_id: NodeId, epoch: Epoch, reason: str) -> None:
        """Count an answer of that leader which no leader of this quorum could give."""
        before, count, now = self._proof, 1, self._timers.now
        if before is not None and before.leader_id == leader_id and now - before.at < self._met_ms:
            count = before.count + 1
        self._proof = _Proof(leader_id, epoch, count, reason, now)
        if count < PROOFS:
            return
        if not self.is_met:
            self._out.note(
                TraceEventKind.RIVAL_FOUND, self._words(self._proof), leader_id=leader_id
            )
        self._until = self._timers.after(self._met_ms)

    def take_back(self, leader_id: NodeId) -> None:
        """Drop the proofs of a leader that agrees with this log after all: they were damaged."""
        proof = self._proof
        if proof is not None and proof.leader_id == leader_id:
            self._proof = self._until = None

    def _words(self, proof: _Proof) -> str:
        return (
            f"node {proof.leader_id}, leader of epoch {proof.epoch}, leads another quorum of"
            f" cluster {self._cluster_id}: {proof.reason}"
        )

    def remark(self) -> str | None:
        """The status warning, with the remedy; None if no other quorum was detected."""
        if not self.is_met or self._proof is None:
            return None
        return (
            f"{self._words(self._proof)}. This controller takes no writes and is not ready until"
            " that quorum is silent. Each acknowledges what the other one lacks: stop the"
            " controllers of the one that is wrong, keep a backup of their directories, empty"
            " them, and format them with --no-initial-controllers, so that they join the other one"
        )
