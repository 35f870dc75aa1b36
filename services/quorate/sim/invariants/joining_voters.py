"""New voters hold the committed log; live voters are not evicted; removed nodes do not rejoin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import RemoveRaftVoterRequest
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import holds, ids

if TYPE_CHECKING:
    from quorate.raft.api import PublishProgress
    from quorate.raft.messages import (
        AddRaftVoterRequest,
        FetchRequest,
        FetchSnapshotRequest,
        MembershipRequest,
        MembershipResponse,
    )
    from quorate.records.ids import Epoch, Millis, NodeId, Offset, ReplicaKey, ReplyToken
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import ClusterView, NodeView


class NewVotersHaveTheLog(Invariant):
    """An added voter holds durably what its leader knew as committed a fetch timeout ago.

    If the leader's high watermark at its election is higher, it holds that. A voter that had to
    fetch these records first would delay every commit that needs it. Source: KIP-853, "AddVoter",
    with rule `observer_lag_baseline`: observers are measured against the high watermark.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        # Per leader, its high watermarks and the times since which it has known them.
        self._known: dict[tuple[NodeId, Epoch], list[tuple[Millis, Offset]]] = {}
        self._decided_ms: dict[NodeId, Millis] = {}

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        if progress.is_leader and progress.high_watermark is not None:
            known = self._known.setdefault((node.node_id, progress.epoch), [])
            known.append((node.local_ms, progress.high_watermark))

    def changing(self, node: NodeView) -> None:
        # A decision may be written much later, if a disk stalls.
        self._decided_ms[node.node_id] = node.local_ms

    def appended(self, node: NodeView, entry: Entry) -> None:
        progress = node.progress
        if entry.voters is None or progress is None or not progress.is_leader:
            return
        before = node.log.voters_below(entry.base)
        needed = self._needed(node, progress.epoch)
        for voter in entry.voters:
            other = self.world.nodes[voter.key.node_id]
            is_new = not holds(before, voter.key)
            if is_new and not other.held_committed(voter, needed):
                raise Violation(
                    f"leader {node.node_id} makes {other.node_id} a voter, whose log ends at "
                    f"{other.log.end}; it knew in time that {needed} was committed"
                )

    def _needed(self, node: NodeView, epoch: Epoch) -> Offset:
        known = self._known[node.node_id, epoch]
        until_ms = self._decided_ms[node.node_id] - self.world.options.timeouts.fetch_timeout_ms
        at_election = known[0][1]
        return max([at_election, *(offset for since_ms, offset in known if since_ms < until_ms)])


class AutoJoinKeepsLiveVoters(Invariant):
    """Auto-join does not remove a voter that fetched within the fetch timeout.

    Source: rule `live_voter_not_evicted`: two processes with one node id must not evict each other.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._fetched_ms: dict[tuple[NodeId, int, Epoch, ReplicaKey], Millis] = {}
        self._asked: dict[tuple[NodeId, ReplyToken], ReplicaKey] = {}

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        if request.replica is not None:
            epoch = request.current_leader_epoch
            key = (node.node_id, node.incarnation, epoch, request.replica)
            self._fetched_ms[key] = node.local_ms

    def asked(self, node: NodeView, token: ReplyToken, request: MembershipRequest) -> None:
        if isinstance(request, RemoveRaftVoterRequest) and request.auto_join:
            self._asked[node.node_id, token] = request.voter

    def answering(self, node: NodeView, token: ReplyToken, response: MembershipResponse) -> None:
        self._asked.pop((node.node_id, token), None)

    def appended(self, node: NodeView, entry: Entry) -> None:
        progress = node.progress
        if entry.voters is None or progress is None or not progress.is_leader:
            return
        before = node.log.voters_below(entry.base)
        for (asked, _), key in self._asked.items():
            if asked != node.node_id or not holds(before, key) or holds(entry.voters, key):
                continue
            last = self._fetched_ms.get((node.node_id, node.incarnation, progress.epoch, key))
            recent_ms = self.world.options.timeouts.fetch_timeout_ms
            if last is not None and node.local_ms - last <= recent_ms:
                raise Violation(
                    f"{key} fetched {node.local_ms - last} ms ago, and is removed from "
                    f"{ids(before)} because another disk wants its place"
                )


class RemovedNodesRejoinAfterRestart(Invariant):
    """A process that knows that it was a voter does not request to become one.

    It was removed because its pod is scaled down, and will be stopped: a voter that joins and then
    stops is missing in the majority. Source: rule `decommissioned_voters`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        # Per process: its high watermark at the start, and the processes known to have been voters.
        self._began: dict[NodeId, tuple[int, Offset | None]] = {}
        self._voted: dict[NodeId, int] = {}

    def published(self, node: NodeView, progress: PublishProgress) -> None:
        known = progress.high_watermark
        incarnation, first = self._began.get(node.node_id, (-1, None))
        if incarnation != node.incarnation:
            self._began[node.node_id] = (node.incarnation, known)
            return
        # Only a high watermark from the current leader counts, and only if the log does not lag.
        is_told = known is not None and (first is None or known > first)
        is_whole = node.log.end.offset >= self.world.oracle.end
        if not is_told or not is_whole:
            return
        assert known is not None
        is_of_epoch = node.log.epoch_before(known) == progress.epoch
        voter = node.log.voters_below(known).by_id(node.node_id)
        # Without directory ids the voter may have been another disk, and was not removed.
        if is_of_epoch and voter is not None and voter.key == node.key:
            self._voted[node.node_id] = node.incarnation

    def joining(self, node: NodeView, request: AddRaftVoterRequest) -> None:
        if request.auto_join and self._voted.get(node.node_id) == node.incarnation:
            raise Violation(f"{node.key} was removed while it ran, and asks to join at once")
