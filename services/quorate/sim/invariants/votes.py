"""One vote per epoch, also across restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import ReplicaKey
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import RecoveredState
    from quorate.raft.messages import ElectionState
    from quorate.records.ids import Epoch
    from quorate.sim.views import ClusterView, NodeView


class OneVotePerEpoch(Invariant):
    """A replica votes for at most one candidate per epoch, also across restarts.

    Without directory ids a new disk is the same voter, with the same votes. A corrupt or stale
    quorum-state counts as it is if its voter cannot detect that. Source: Raft paper, section 5.2
    (votedFor is persistent); Kafka's `FileQuorumStateStore`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._votes: dict[tuple[ReplicaKey, Epoch], ReplicaKey] = {}
        self._newest: dict[ReplicaKey, Epoch] = {}

    def voted(self, node: NodeView, epoch: Epoch, candidate: ReplicaKey) -> None:
        for key in _voters(node):
            first = self._votes.setdefault((key, epoch), candidate)
            if first != candidate:
                raise Violation(
                    f"node {node.node_id} votes for {candidate.node_id} in epoch {epoch}, "
                    f"after it voted for {first.node_id}"
                )
        self._newest[node.key] = max(epoch, self._newest.get(node.key, epoch))

    def on_state_lost(self, node: NodeView, state: ElectionState) -> None:
        for key, epoch in list(self._votes):
            is_other = epoch == state.epoch and self._votes[key, epoch] != state.voted
            if key in (node.key, ReplicaKey(node.node_id)) and (epoch > state.epoch or is_other):
                del self._votes[key, epoch]
        known = [epoch for key, epoch in self._votes if key == node.key]
        self._newest.pop(node.key, None)
        if known:
            self._newest[node.key] = max(known)

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        epoch = self._newest.get(node.key)
        if epoch is None:
            return
        state = recovered.election
        if state is None or state.epoch < epoch:
            raise Violation(f"node {node.node_id} forgot epoch {epoch}, in which it voted")
        vote = self._votes[node.key, epoch]
        voted = None if state.voted is None else state.voted.node_id
        if state.epoch == epoch and voted not in (None, vote.node_id):
            raise Violation(f"node {node.node_id} remembers another vote in epoch {epoch}")
        if state.epoch == epoch and state.voted is None and state.leader_id is None:
            raise Violation(f"node {node.node_id} forgot its vote in epoch {epoch}")


def _voters(node: NodeView) -> list[ReplicaKey]:
    """The voters as which this disk votes: itself, and the voter without a directory id."""
    voter = node.log.voters.by_id(node.node_id)
    is_static = voter is not None and voter.key.directory_id is None
    return [node.key, ReplicaKey(node.node_id)] if is_static else [node.key]
