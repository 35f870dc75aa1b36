"""A leader resigns once its own removal is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import holds, ids

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.sim.views import NodeView


class RemovedLeadersResign(Invariant):
    """A leader that knows that its own removal is committed does not continue to lead.

    Sources: KIP-853, "Removing Voters"; rule `removed_voter_may_campaign`.
    """

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        if not progress.is_leader or progress.high_watermark is None:
            return
        voters = node.log.voters
        if not voters.voters or holds(voters, node.key):
            return
        # Records below the log's start are committed.
        since = max((e.base for e in node.log.entries if e.voters is not None), default=-1)
        if since < progress.high_watermark:
            raise Violation(
                f"node {node.node_id} leads on, although its core knows that the voters "
                f"{ids(voters)} are committed"
            )
