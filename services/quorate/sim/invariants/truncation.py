"""Committed records are never truncated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.sim.views import NodeView


class NoTruncationOfCommitted(Invariant):
    """No log is truncated below its high watermark or below the end of the committed history.

    Source: KIP-595, "Log Reconciliation"; Kafka's `KafkaMetadataLog.truncateTo`: a follower never
    truncates below its high watermark.
    """

    def truncating(self, node: NodeView, to: OffsetAndEpoch) -> None:
        progress = node.progress
        known = None if progress is None else progress.high_watermark
        if known is not None and to.offset < known:
            raise Violation(
                f"node {node.node_id} cuts its log at {to.offset}, below its high watermark {known}"
            )
        history = self.world.oracle
        for entry in node.log.entries:
            if entry.end > to.offset and history.chains.get(entry.end) == entry.chain:
                raise Violation(
                    f"node {node.node_id} cuts its log at {to.offset}, "
                    f"but {entry.base}..{entry.end - 1} is committed"
                )
