"""The core's knowledge of its log matches the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import ids

if TYPE_CHECKING:
    from quorate.raft.api import LogCleaned, RecoveredState
    from quorate.raft.replication.log_state import LogState
    from quorate.records.ids import Epoch, NodeId, Offset, OffsetAndEpoch
    from quorate.sim.checkers.log_view import Entry, LogView
    from quorate.sim.views import ClusterView, NodeView


class CoresKnowTheirLogs(Invariant):
    """A core at rest knows the end, the epochs, the voters and the kraft.version of its log.

    It keeps these separately, and updates them for appends, truncations and fetched snapshots. The
    check runs after each event that may have changed more than the end.

    Sources: KIP-853 (a truncated voter set and version revert to the previous ones), KIP-595 ("Log
    Reconciliation").
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._changed: dict[NodeId, None] = {}
        self._epochs: dict[NodeId, Epoch] = {}

    def started(self, node: NodeView, recovered: RecoveredState) -> None:
        self._changed[node.node_id] = None
        self._epochs[node.node_id] = recovered.end.epoch

    def appended(self, node: NodeView, entry: Entry) -> None:
        has_controls = entry.voters is not None or entry.kraft_version is not None
        if has_controls or self._epochs.get(node.node_id) != entry.epoch:
            self._changed[node.node_id] = None
            self._epochs[node.node_id] = entry.epoch

    def truncating(self, node: NodeView, to: OffsetAndEpoch) -> None:
        self._changed[node.node_id] = None

    def snapshot(self, node: NodeView, snapshot_id: OffsetAndEpoch) -> None:
        self._changed[node.node_id] = None

    def cleaned(self, node: NodeView, event: LogCleaned) -> None:
        self._changed[node.node_id] = None

    def on_tick(self) -> None:
        if not self._changed:
            return
        for node in self.world.running():
            if node.node_id in self._changed and node.is_at_rest:
                del self._changed[node.node_id]
                self._judge(node, node.core.replica.log, node.log)

    def _judge(self, node: NodeView, known: LogState, log: LogView) -> None:
        name = f"the core of node {node.node_id}"
        if known.end != log.end:
            raise Violation(f"{name} has the log end {known.end}, but its log ends at {log.end}")
        told, begun = _epochs_known(known, log.start.offset), _epochs_begun(log)
        if told != begun:
            raise Violation(f"{name} has the epochs {told}, but its log has {begun}")
        self._check_sets(name, known, log)
        if log.start.offset == 0 and all(entry.voters is None for entry in log.entries):
            # These voters are in the directory's bootstrap snapshot or in the settings.
            return
        voters = log.voters
        if known.voter_set != voters:
            raise Violation(
                f"{name} has the voters {ids(known.voter_set)}, but its log has {ids(voters)}"
            )
        if not voters.voters:
            return
        # One batch brings kraft.version 1 and the directory ids of the voters.
        version = int(all(voter.key.directory_id is not None for voter in voters))
        if known.kraft_version != version:
            raise Violation(
                f"{name} has kraft.version {known.kraft_version}, but its log has {version}"
            )

    @staticmethod
    def _check_sets(name: str, known: LogState, log: LogView) -> None:
        """Check the offsets that the core has for the voter sets after the newest snapshot."""
        newest = known.newest_snapshot
        start = max(log.start.offset, 0 if newest is None else newest.offset)
        told = [entry.offset for entry in known.voters if entry.offset >= start]
        spans = [(e.base, e.end) for e in log.entries if e.voters is not None and e.base >= start]
        is_alike = len(told) == len(spans)
        if not is_alike or any(not a <= at < b for at, (a, b) in zip(told, spans, strict=True)):
            raise Violation(
                f"{name} has voter sets at the offsets {told}, but its log in the batches {spans}"
            )


def _epochs_known(known: LogState, start: Offset) -> list[tuple[int, int]]:
    return [(e.epoch, e.start_offset) for e in known.epochs if e.start_offset >= start]


def _epochs_begun(log: LogView) -> list[tuple[int, int]]:
    """The epoch and start offset of each epoch with records after the log start."""
    begun: list[tuple[int, int]] = []
    # No records exist below 0, so the epoch of the bootstrap snapshot does not count.
    epoch = log.start.epoch if log.start.offset else 0
    for entry in log.entries:
        if entry.epoch != epoch:
            epoch = entry.epoch
            begun.append((epoch, entry.base))
    return begun
