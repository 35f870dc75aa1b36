"""Leader completeness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.invariants.invariant import Invariant
from quorate.sim.oracle import Violation

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.records.ids import Epoch
    from quorate.sim.logview import Entry
    from quorate.sim.node import SimulatedNode
    from quorate.sim.world import World


class LeaderCompleteness(Invariant):
    """A leader's log holds everything that was committed in earlier epochs.

    Source: Raft paper, section 5.4; the commit may become known after the later leader's election,
    so it is held against the leaders that there are, too.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._checked: Epoch | None = None

    def published(self, node: SimulatedNode, progress: PublishProgress) -> None:
        if progress.is_leader and node.led_epoch != progress.epoch:
            self._check(node)

    def committed(self, node: SimulatedNode, entry: Entry) -> None:
        for other in self.world.running():
            progress = other.progress
            if progress is not None and progress.is_leader and progress.epoch > entry.epoch:
                self._check(other)

    def _check(self, node: SimulatedNode) -> None:
        history = self.world.oracle
        if history.end <= node.log.start.offset:
            return
        chain = node.log.chain_at(history.end)
        if chain != history.chains[history.end]:
            raise Violation(
                f"leader {node.node_id} lacks committed records: its log ends at {node.log.end}, "
                f"history at {history.end}"
            )
