"""A leader's log holds everything committed in earlier epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.records.ids import Epoch
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import NodeView


class LeaderCompleteness(Invariant):
    """A leader's log holds everything that was committed in earlier epochs.

    Source: Raft paper, section 5.4. A commit may become known only after the election of a later
    leader, so existing leaders are checked as well.
    """

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        if progress.is_leader and node.led_epoch != progress.epoch:
            self._check(node, progress.epoch)

    def committed(self, node: NodeView, entry: Entry) -> None:
        for other in self.world.running():
            progress = other.progress
            if progress is not None and progress.is_leader:
                self._check(other, progress.epoch)

    def _check(self, node: NodeView, epoch: Epoch) -> None:
        end = self.world.oracle.end_before(epoch)
        if end <= node.log.start.offset:
            return
        if node.log.chain_at(end) != self.world.oracle.chains[end]:
            raise Violation(
                f"leader {node.node_id} of epoch {epoch} lacks committed records: "
                f"its log ends at {node.log.end}, history before its epoch at {end}"
            )
