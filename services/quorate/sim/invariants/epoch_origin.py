"""Every epoch starts with a won pre-vote or after a resignation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.ids import Epoch
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import ids

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress, RecoveredState
    from quorate.raft.messages import ElectionState
    from quorate.records.ids import NodeId, ReplicaKey
    from quorate.sim.views import ClusterView, NodeView


class EpochsRiseByElections(Invariant):
    """An epoch starts with a candidate that won its pre-votes, or after an epoch was resigned.

    No replica is in any other epoch. So only a replica that a majority has granted its pre-votes
    deposes a leader. Sources: Kafka's `QuorumState.transitionToCandidate` (epochs increase by
    exactly one per election); KIP-996; rules `no_state_from_rejections` and `input_bounds`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._known = {Epoch(0): None}
        # Per nominee and epoch, the time of each pre-vote; and since when each node requests them.
        self._given: dict[tuple[ReplicaKey, Epoch], dict[ReplicaKey, int]] = {}
        self._asking_us: dict[NodeId, int] = {}

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        saved = recovered.election.epoch if recovered.election is not None else Epoch(0)
        self._see(node, max(saved, recovered.end.epoch))

    def on_pre_vote_granted(self, node: NodeView, epoch: Epoch, nominee: ReplicaKey) -> None:
        self._given.setdefault((nominee, epoch), {})[node.key] = self.world.now_us

    def on_forged_epoch(self, epoch: Epoch) -> None:
        self._known[epoch] = None

    def saving(self, node: NodeView, state: ElectionState) -> None:
        if state.epoch in self._known:
            return
        before = node.progress
        was_resigned = before is not None and before.role == "resigned"
        is_next = Epoch(state.epoch - 1) in self._known
        if state.voted == node.key and is_next:
            self._check_pre_votes(node, Epoch(state.epoch - 1))
        elif not (was_resigned and is_next):
            raise Violation(
                f"node {node.node_id} comes to epoch {state.epoch}, to which nobody was elected"
            )
        self._known[state.epoch] = None

    def _check_pre_votes(self, node: NodeView, epoch: Epoch) -> None:
        voters = node.log.voters
        since_us = self._asking_us.get(node.node_id, self.world.now_us)
        given = self._given.get((node.key, epoch), {})
        having = [
            voter.key.node_id
            for voter in voters
            if node.is_voter(voter)
            or any(at >= since_us and voters.voter(key) is voter for key, at in given.items())
        ]
        if len(having) < voters.majority:
            raise Violation(
                f"node {node.node_id} raises the epoch to {epoch + 1} with the pre-votes of "
                f"{having} among the voters {ids(voters)}"
            )

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        before = node.progress.role if node.progress is not None else None
        if progress.role == "prospective" and before != "prospective":
            self._asking_us[node.node_id] = self.world.now_us
        self._see(node, progress.epoch)

    def _see(self, node: NodeView, epoch: Epoch) -> None:
        if epoch not in self._known:
            raise Violation(f"node {node.node_id} is in epoch {epoch}, to which nobody was elected")
