"""Every request is answered as soon as an answer exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.messages import FetchRequest
from quorate.records.ids import Offset
from quorate.server.metadata.decision_executor import AHEAD_MAX, INLINE_BUDGET_S
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_processes import VoterProcesses
from quorate.sim.time_bounds import MILLION

if TYPE_CHECKING:
    from quorate.controller.decision import Decision
    from quorate.controller.request_types import WriteRequest
    from quorate.raft.messages import FetchSnapshotRequest
    from quorate.records.ids import Epoch, Millis, NodeId, ReplicaKey
    from quorate.sim.views import ClusterView, NodeView
    from quorate.sim.workload.pending_requests import WaitingRequest

# The time that a due response may still take, by the node's own clock.
SLACK_MS: Final = 500
# The timeout of reads that have none of their own (server/metadata/read_handler.py).
READ_TIMEOUT_MS: Final = 30_000
# After this many Fetches of a voter since a request, with a response received before each, the
# newest echoes the requested read round, even if some were in flight or duplicated.
FETCHES: Final = 8


class RequestsAreAnswered(Invariant):
    """Each request is answered as soon as its reply is known, and when its controller resigns.

    A decided write is answered when the records it depends on are committed or, if it writes
    nothing, once a majority has confirmed the leader. All are answered when the controller that
    accepted them is not active any more. A write is decided once few enough decided records are
    uncommitted, and between two turns of its client every other client has one. Sources:
    rules `linearizable_reads`, `stream_responses` and `disk_call_deadline`; docs/protocol.md, "What
    waits"; docs/decisions/0010.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        # Per leader process, the number of counted Fetches of each voter.
        self._fetches: dict[tuple[NodeId, int], dict[ReplicaKey, int]] = {}
        self._processes: dict[tuple[NodeId, int], VoterProcesses] = {}
        # Voters that have received a response since their last counted Fetch: a voter whose
        # responses are delayed fetches again and again, without a newer read round to echo.
        self._has_heard: set[NodeId] = set()
        self._awake_ms: dict[NodeId, tuple[int, Millis]] = {}
        queue = world.options.queue
        self._ahead_max = queue.ahead_max or AHEAD_MAX
        # Waiting clients take turns by the time that their decisions used, which is equal for all.
        # Requests of one event-loop iteration may be decided together, and this is compensated.
        self._others = 2 * queue.client_addresses + 1
        self._turns_before = 2 + int(INLINE_BUDGET_S * MILLION) // max(1, queue.decision_us)
        # Per node, the end of its decided records in its last term as active controller.
        self._ends: dict[NodeId, tuple[tuple[int, Epoch | None], Offset]] = {}

    def decided(self, node: NodeView, request: WriteRequest, decision: Decision) -> None:
        self._ends[node.node_id] = _term(node), decision.end_offset
        if not self.world.options.queue.client_addresses:
            return
        waiting = [one for one in node.waiting if one.waits_for_decision]
        lanes = [one.lane for one in node.waiting if one.request is request]
        for one in waiting:
            # The queue makes progress.
            one.late_since_ms = None
            if one.lane in lanes:
                one.own_turns += 1
            else:
                one.other_turns += 1
            if one.other_turns > (one.own_turns + self._turns_before) * self._others:
                raise Violation(
                    f"node {node.node_id} has decided {one.other_turns} requests of other clients "
                    f"and {one.own_turns} of its own while a {one.what} waited"
                )

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        if request.replica is None:
            return
        key, life = request.replica, (node.node_id, node.incarnation)
        processes = self._processes.setdefault(life, VoterProcesses())
        fetch_timeout_ms = self.world.options.timeouts.fetch_timeout_ms
        may_be_two = processes.may_be_two(request, node.local_ms, fetch_timeout_ms)
        is_counted = isinstance(request, FetchRequest) and not may_be_two
        if is_counted and key.node_id in self._has_heard:
            self._has_heard.remove(key.node_id)
            counts = self._fetches.setdefault(life, {})
            counts[key] = counts.get(key, 0) + 1

    def heard_leader(self, node: NodeView) -> None:
        self._has_heard.add(node.node_id)

    def on_tick(self) -> None:
        for node in self.world.running():
            if not node.is_stepped:
                self._awake_ms.pop(node.node_id, None)
                continue
            troubles, since_ms = self._awake_ms.get(node.node_id, (-1, node.local_ms))
            if troubles != node.troubles:
                since_ms = node.local_ms
            self._awake_ms[node.node_id] = node.troubles, since_ms
            if node.local_ms - since_ms > SLACK_MS:
                self._judge(node)

    def _judge(self, node: NodeView) -> None:
        for waiting in node.waiting:
            why = self._why_due(node, waiting)
            if why is None or waiting.since_ms is None:
                waiting.late_since_ms = None
            elif waiting.late_since_ms is None:
                waiting.late_since_ms = node.local_ms
            elif node.local_ms - waiting.late_since_ms > SLACK_MS:
                raise Violation(
                    f"node {node.node_id} does not answer a {waiting.what} that came "
                    f"{node.local_ms - waiting.since_ms} ms ago, although {why}"
                )
        since_ms = node.oldest_read_ms
        if since_ms is not None and node.local_ms - since_ms > READ_TIMEOUT_MS + SLACK_MS:
            raise Violation(
                f"node {node.node_id} does not answer a read that came "
                f"{node.local_ms - since_ms} ms ago"
            )

    def _why_due(self, node: NodeView, waiting: WaitingRequest) -> str | None:
        progress = node.progress
        high_watermark = None if progress is None else progress.high_watermark
        if waiting.since_ms is None:
            return None
        if node.active_epoch != waiting.epoch:
            return f"it is not the active controller of epoch {waiting.epoch} any more"
        if waiting.end is None:
            term, end = self._ends.get(node.node_id, (None, Offset(0)))
            # Records decided in another term may be lost.
            end = max(end if term == _term(node) else Offset(0), node.log.end.offset)
            if high_watermark is None or end - high_watermark >= self._ahead_max:
                return None
            return "nothing stands in the way of a decision"
        if high_watermark is None or high_watermark < waiting.end:
            return None
        if waiting.is_written:
            return f"all below {waiting.end} is committed"
        if self._has_word(node, waiting):
            return f"a majority has heard and fetched {FETCHES} times since"
        return None

    def _has_word(self, node: NodeView, waiting: WaitingRequest) -> bool:
        """True if a majority has confirmed since then that this node leads."""
        now = self._fetches.get((node.node_id, node.incarnation), {})
        if waiting.fetches is None:
            waiting.fetches = dict(now)
        voters = node.log.voters
        told = 0
        for voter in voters:
            keys = [key for key in now if voters.voter(key) is voter]
            since = sum(now[key] - waiting.fetches.get(key, 0) for key in keys)
            told += node.is_voter(voter) or since >= FETCHES
        return told >= voters.majority


def _term(node: NodeView) -> tuple[int, Epoch | None]:
    return node.incarnation, node.active_epoch
