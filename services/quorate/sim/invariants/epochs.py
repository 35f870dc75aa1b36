"""Which epochs there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.records.ids import Epoch
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.oracle import Violation

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress, RecoveredState
    from quorate.sim.seen import Node, World

STEPS_MAX: Final = 3


class EpochsRiseByElections(Invariant):
    """No replica is in an epoch that nobody came to by an election.

    Source: seed 000, safety properties (epochs increase by exactly one per election); rules 27, 28.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._newest = Epoch(0)

    def started(self, node: Node, recovered: RecoveredState) -> None:
        """An only voter may die between its own vote and the first word of its epoch."""
        saved = recovered.election.epoch if recovered.election is not None else Epoch(0)
        self._see(node, max(saved, recovered.end.epoch))

    def published(self, node: Node, progress: PublishProgress) -> None:
        self._see(node, progress.epoch)

    def _see(self, node: Node, epoch: Epoch) -> None:
        if epoch > self._newest + STEPS_MAX:
            raise Violation(
                f"node {node.node_id} is in epoch {epoch}, after {self._newest} was the newest"
            )
        self._newest = max(self._newest, epoch)
