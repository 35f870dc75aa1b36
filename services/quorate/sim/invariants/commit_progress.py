"""A leader commits what a majority has flushed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.raft.messages import FetchRequest
from quorate.records.ids import Epoch, Offset
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_processes import SLACK_MS, VoterProcesses
from quorate.sim.invariants.voter_sets import ids
from quorate.sim.time_bounds import slowest_call_us

if TYPE_CHECKING:
    from quorate.raft.messages import FetchSnapshotRequest
    from quorate.records.ids import Millis, NodeId, ReplicaKey
    from quorate.sim.views import ClusterView, NodeView


@dataclass(slots=True)
class _Told:
    """The log ends that voters have reported to one leader in this epoch."""

    incarnation: int
    epoch: Epoch
    ends: dict[ReplicaKey, Offset] = field(default_factory=dict)
    processes: VoterProcesses = field(default_factory=VoterProcesses)
    late: tuple[Offset, Millis] | None = None

    def forget(self, node_id: NodeId) -> None:
        """Drop the reports of all disks of that node."""
        for key in [key for key in self.ends if key.node_id == node_id]:
            del self.ends[key]


class MajorityFlushedIsCommitted(Invariant):
    """A leader commits the offset up to which a majority of its voters has reported flushed logs.

    It does so once that covers a record of its own epoch, and within the time of its disk calls.
    Sources: Raft paper, sections 5.3 and 5.4.2; KIP-595, "High Watermark".
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._told: dict[NodeId, _Told] = {}

    def stopped(self, node: NodeView) -> None:
        self._told.pop(node.node_id, None)

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        progress = node.progress
        if request.replica is None or progress is None:
            return
        if not progress.is_leader or request.current_leader_epoch != progress.epoch:
            return
        told = self._of(node, progress.epoch)
        fetch_timeout_ms = self.world.options.timeouts.fetch_timeout_ms
        may_be_two = told.processes.may_be_two(request, node.local_ms, fetch_timeout_ms)
        if not isinstance(request, FetchRequest):
            return
        voter = node.log.voters.voter(request.replica)
        if voter is not None and voter.key.directory_id is None:
            # Without directory ids, only the new disk of a voter counts, and not the old one.
            told.forget(voter.key.node_id)
        if may_be_two:
            return
        is_of_this_log = node.log.epoch_before(request.fetch_offset) == request.last_fetched_epoch
        if is_of_this_log:
            told.ends[request.replica] = request.fetch_offset
        else:
            told.ends.pop(request.replica, None)

    def _of(self, node: NodeView, epoch: Epoch) -> _Told:
        told = self._told.get(node.node_id)
        if told is None or (told.incarnation, told.epoch) != (node.incarnation, epoch):
            told = self._told[node.node_id] = _Told(node.incarnation, epoch)
        return told

    def on_tick(self) -> None:
        for node in self.world.running():
            told, progress = self._told.get(node.node_id), node.progress
            if told is None or progress is None or not progress.is_leader:
                continue
            if told.epoch != progress.epoch or not node.is_stepped or node.is_hanging:
                told.late = None
                continue
            end = self._majority_end(node, told)
            if end <= max(progress.high_watermark or 0, progress.epoch_start or 0):
                told.late = None
            elif told.late is None:
                told.late = end, node.local_ms
            else:
                self._judge(node, told.late)

    def _judge(self, node: NodeView, late: tuple[Offset, Millis]) -> None:
        end, since_ms = late
        limit_ms = SLACK_MS + 2 * slowest_call_us(self.world.options) // 1000
        progress = node.progress
        known = None if progress is None else progress.high_watermark
        if node.local_ms - since_ms > limit_ms and (known or 0) < end:
            raise Violation(
                f"leader {node.node_id} has not committed beyond {known} for "
                f"{node.local_ms - since_ms} ms, and a majority of the voters "
                f"{ids(node.log.voters)} has all below {end}"
            )

    @staticmethod
    def _majority_end(node: NodeView, told: _Told) -> Offset:
        voters = node.log.voters
        ends = [
            node.safe_end()
            if node.is_voter(voter)
            else max((end for k, end in told.ends.items() if voters.voter(k) is voter), default=0)
            for voter in voters
        ]
        ends.sort(reverse=True)
        return Offset(ends[len(ends) // 2]) if ends else Offset(0)
