"""Linearizable reads wait for the confirmation of a majority."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.raft.messages import FetchRequest
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import ids

if TYPE_CHECKING:
    from quorate.raft.messages import FetchSnapshotRequest
    from quorate.records.ids import Epoch, NodeId, ReplyToken
    from quorate.sim.views import ClusterView, NodeView


@dataclass(slots=True)
class _Rounds:
    """The newest read round that a leader has sent, and the newest that each voter has echoed.

    `before` has, for each read in progress, the newest round sent when it began.
    """

    incarnation: int
    epoch: Epoch
    sent: int = 0
    echoed: dict[NodeId, int] = field(default_factory=dict)
    before: dict[ReplyToken, int] = field(default_factory=dict)


class ReadsAreConfirmed(Invariant):
    """A read is confirmed when a majority has echoed a read round sent after the read began.

    A Fetch that echoes an older round may have been sent before, by a voter that has elected
    another leader since. Source: rule `linearizable_reads`, decision 0002.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._rounds: dict[NodeId, _Rounds] = {}

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        if not isinstance(request, FetchRequest) or request.replica is None:
            return
        rounds = self._rounds.get(node.node_id)
        if rounds is None or request.current_leader_epoch != rounds.epoch:
            return
        if node.log.voters.voter(request.replica) is not None:
            known = rounds.echoed.get(request.replica.node_id, 0)
            rounds.echoed[request.replica.node_id] = max(known, request.read_round)

    def reading(self, node: NodeView, token: ReplyToken) -> None:
        rounds = self._of(node)
        if rounds is not None:
            rounds.before[token] = rounds.sent

    def changing(self, node: NodeView) -> None:
        # A new voter set may be in effect before it is in the log, and its majority confirms.
        rounds = self._of(node)
        if rounds is not None:
            rounds.before.clear()

    def sending_round(self, node: NodeView, read_round: int) -> None:
        rounds = self._of(node)
        if rounds is not None:
            rounds.sent = max(rounds.sent, read_round)

    def confirming(self, node: NodeView, token: ReplyToken) -> None:
        rounds = self._of(node)
        before = None if rounds is None else rounds.before.pop(token, None)
        if rounds is None or before is None:
            return
        voters = node.log.voters
        having = [
            int(voter.key.node_id)
            for voter in voters
            if node.is_voter(voter) or rounds.echoed.get(voter.key.node_id, 0) > before
        ]
        if len(having) < voters.majority:
            raise Violation(
                f"node {node.node_id} answers a current read, and of the voters {ids(voters)} only "
                f"{having} have followed it since that began (round {before} had left)"
            )

    def _of(self, node: NodeView) -> _Rounds | None:
        progress = node.progress
        if progress is None or not progress.is_leader:
            return None
        known = self._rounds.get(node.node_id)
        if known is None or (known.incarnation, known.epoch) != (node.incarnation, progress.epoch):
            known = self._rounds[node.node_id] = _Rounds(node.incarnation, progress.epoch)
        return known
