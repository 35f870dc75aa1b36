"""Snapshots are verified before they are served and kept while fetched.

See rule `snapshot_pinning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant

if TYPE_CHECKING:
    from quorate.raft.api import LogCleaned
    from quorate.raft.messages import SnapshotRange
    from quorate.records.ids import NodeId, OffsetAndEpoch
    from quorate.sim.views import ClusterView, NodeView


class SnapshotsAreCheckedAndPinned(Invariant):
    """A process serves chunks only of snapshots it has verified, and keeps those being fetched.

    Source: rule `snapshot_pinning`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._sent_ms: dict[tuple[NodeId, int, OffsetAndEpoch], int] = {}

    def sending(self, node: NodeView, part: SnapshotRange) -> None:
        if part.snapshot_id not in node.checked:
            raise Violation(
                f"node {node.node_id} sends snapshot {part.snapshot_id} without a look at it"
            )
        self._sent_ms[node.node_id, node.incarnation, part.snapshot_id] = node.local_ms

    def cleaned(self, node: NodeView, event: LogCleaned) -> None:
        kept = {info.snapshot_id for info in event.snapshots}
        for (node_id, incarnation, snapshot_id), sent_ms in self._sent_ms.items():
            if (node_id, incarnation) != (node.node_id, node.incarnation) or snapshot_id in kept:
                continue
            is_recent = node.local_ms - sent_ms < self.world.options.timeouts.fetch_timeout_ms
            if is_recent and node.core.replica.log.snapshot(snapshot_id) is not None:
                raise Violation(
                    f"node {node.node_id} deletes snapshot {snapshot_id}, of which it sent a slice "
                    f"{node.local_ms - sent_ms} ms ago"
                )
