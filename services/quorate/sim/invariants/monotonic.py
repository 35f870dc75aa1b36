"""Epochs never decrease; high watermarks never decrease within one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress, RecoveredState
    from quorate.raft.messages import ElectionState
    from quorate.records.ids import Epoch, Offset, ReplicaKey
    from quorate.sim.views import ClusterView, NodeView


class Monotonic(Invariant):
    """A replica's epoch never decreases, its high watermark not within one process.

    Source: KIP-595 (epochs are durable); rule `snapshot_within_flush`: after a restart the high
    watermark starts no lower than the newest snapshot, and a log never ends before it.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._epochs: dict[ReplicaKey, Epoch] = {}
        self._high_watermarks: dict[ReplicaKey, Offset] = {}

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        self._high_watermarks.pop(node.key, None)
        if not recovered.snapshots:
            return
        newest = recovered.snapshots[-1].snapshot_id.offset
        self._high_watermarks[node.key] = newest
        if recovered.end.offset < newest:
            raise Violation(
                f"node {node.node_id} starts with a log that ends at {recovered.end}, "
                f"before its snapshot at {newest}"
            )

    def on_state_lost(self, node: NodeView, state: ElectionState) -> None:
        self._epochs[node.key] = state.epoch

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        epoch = self._epochs.get(node.key)
        if epoch is not None and progress.epoch < epoch:
            raise Violation(f"node {node.node_id} goes back from epoch {epoch} to {progress.epoch}")
        self._epochs[node.key] = progress.epoch
        if progress.high_watermark is None:
            return
        before = self._high_watermarks.get(node.key)
        if before is not None and progress.high_watermark < before:
            raise Violation(
                f"the high watermark of node {node.node_id} goes back from {before} "
                f"to {progress.high_watermark}"
            )
        self._high_watermarks[node.key] = progress.high_watermark
