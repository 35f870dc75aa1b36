"""A snapshot equals the committed prefix that it replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.workload.kv_model import KvModel

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.records.voters import VoterSet
    from quorate.sim.views import NodeView


class SnapshotEqualsPrefix(Invariant):
    """A snapshot holds exactly the state and the voter set of the committed prefix it replaces.

    It must also survive any power loss: that prefix of the log may be deleted next. Source:
    KIP-630, "Proposed Changes"; KIP-853 for the voter set.
    """

    def snapshot(self, node: NodeView, snapshot_id: OffsetAndEpoch) -> None:
        history = self.world.oracle
        if not node.is_on_platter(snapshot_id):
            raise Violation(f"snapshot {snapshot_id} of node {node.node_id} is not on its platter")
        if snapshot_id.offset > history.end:
            raise Violation(
                f"node {node.node_id} has a snapshot at {snapshot_id}, history ends {history.end}"
            )
        content = node.store.read_snapshot(snapshot_id)
        machine, voters = KvModel.load(snapshot_id.offset, content.records), content.voters
        expected = history.state_at(snapshot_id.offset)
        if machine != expected:
            raise Violation(
                f"snapshot {snapshot_id} of node {node.node_id} holds {machine}, "
                f"its prefix has {expected}"
            )
        expected_voters: VoterSet | None = history.voters_at(snapshot_id.offset)
        if any(voter.key.directory_id is None for voter in expected_voters or ()):
            expected_voters = None
        if voters != expected_voters:
            raise Violation(f"snapshot {snapshot_id} of node {node.node_id} holds other voters")
