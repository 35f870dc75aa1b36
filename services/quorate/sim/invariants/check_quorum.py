"""A leader without a majority resigns within the check-quorum interval, and none without cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.raft.api import SendReply
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.invariants.voter_sets import ids
from quorate.sim.time_bounds import slowest_call_us

if TYPE_CHECKING:
    from quorate.raft.api import RequestReceived, Update
    from quorate.raft.messages import Response
    from quorate.raft.trace_events import TraceEvent
    from quorate.records.ids import Epoch, Millis, NodeId, ReplicaKey
    from quorate.records.voters import VoterSet
    from quorate.sim.checkers.log_view import Entry
    from quorate.sim.views import ClusterView, NodeView

SLACK_MS: Final = 50


@dataclass(slots=True)
class _Leadership:
    """One leadership; from `since_ms`, by its own clock, only silent voters can end it."""

    incarnation: int
    epoch: Epoch
    since_ms: Millis
    heard_ms: dict[ReplicaKey, Millis] = field(default_factory=dict)


class CheckQuorum(Invariant):
    """A leader that receives no fetches from a majority for a check-quorum interval resigns.

    The interval is 1.5 fetch timeouts and restarts when a majority has fetched since its start. So
    a leader that needs more than one other voter may continue for up to two intervals after the
    first of these fetches. Sources: KIP-595, "Leader's resignation"; rules `check_quorum_restart`
    and `monotonic_clock`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._leading: dict[NodeId, _Leadership] = {}

    def fetching(self, node: NodeView, request: FetchRequest | FetchSnapshotRequest) -> None:
        leading = self._leading.get(node.node_id)
        if leading is None or request.replica is None:
            return
        if request.current_leader_epoch == leading.epoch:
            voter = node.log.voters.voter(request.replica)
            leading.heard_ms[request.replica if voter is None else voter.key] = node.local_ms

    def appended(self, node: NodeView, entry: Entry) -> None:
        """A new voter set gets a full interval (rule `check_quorum_restart`)."""
        leading = self._leading.get(node.node_id)
        if leading is not None and entry.voters is not None:
            leading.since_ms = node.local_ms

    def stopped(self, node: NodeView) -> None:
        self._leading.pop(node.node_id, None)

    def on_tick(self) -> None:
        for node in self.world.running():
            progress = node.progress
            if progress is None or not progress.is_leader:
                self._leading.pop(node.node_id, None)
                continue
            known = self._leading.get(node.node_id)
            if known is None or (known.incarnation, known.epoch) != (
                node.incarnation,
                progress.epoch,
            ):
                known = _Leadership(node.incarnation, progress.epoch, node.local_ms)
                self._leading[node.node_id] = known
            elif not node.is_stepped:
                # It gets no requests now; when it resumes, it checks its timers first.
                known.since_ms = node.local_ms
            else:
                self._judge(node, known)

    def _judge(self, node: NodeView, leading: _Leadership) -> None:
        voters = node.log.voters
        needed = voters.majority - any(node.is_voter(voter) for voter in voters)
        if needed < 1:
            return
        interval_ms = self.world.options.timeouts.check_quorum_timeout_ms
        slack_ms = SLACK_MS + slowest_call_us(self.world.options) // 1000
        heard_ms = self._heard(node, leading, voters, needed)
        limit_ms = max(
            leading.since_ms + interval_ms, heard_ms + interval_ms * (1 if needed == 1 else 2)
        )
        if node.local_ms > limit_ms + slack_ms:
            raise Violation(
                f"node {node.node_id} leads epoch {leading.epoch}, and has not heard a majority of "
                f"the voters {ids(voters)} for {node.local_ms - heard_ms} ms"
            )

    @staticmethod
    def _heard(node: NodeView, leading: _Leadership, voters: VoterSet, needed: int) -> int:
        """The time since which the leader has not heard from as many voters as it needs."""
        times = sorted(
            (
                leading.heard_ms.get(voter.key, leading.since_ms)
                for voter in voters
                if not node.is_voter(voter)
            ),
            reverse=True,
        )
        return times[needed - 1] if len(times) >= needed else leading.since_ms


class LeadersResignOnlyWithoutQuorum(Invariant):
    """A leader does not resign for lack of voters if a majority has fetched in the interval.

    A Fetch counts if the voter's log agrees with the leader's, and so does a FetchSnapshot.
    Sources: KIP-595, "Leader's resignation"; KIP-630 for FetchSnapshot; rule `monotonic_clock`.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._heard_ms: dict[NodeId, tuple[int, Epoch, dict[NodeId, Millis]]] = {}

    def handled(
        self, node: NodeView, request: RequestReceived, update: Update, *, is_due: bool
    ) -> None:
        del is_due
        asked, progress = request.request, node.progress
        if not isinstance(asked, FetchRequest | FetchSnapshotRequest) or asked.replica is None:
            return
        if progress is None or not progress.is_leader or not _is_served(request, update):
            return
        if node.log.voters.voter(asked.replica) is not None:
            self._heard(node, progress.epoch)[asked.replica.node_id] = node.local_ms

    def noted(self, node: NodeView, trace_event: TraceEvent) -> None:
        is_end = (
            trace_event.kind is TraceEventKind.ROLE_TAKEN
            and trace_event.values["to_role"] == "resigned"
        )
        progress = node.progress
        if (
            not is_end
            or trace_event.values["cause"] != RoleChangeCause.CHECK_QUORUM.value
            or progress is None
        ):
            return
        interval_ms = self.world.options.timeouts.check_quorum_timeout_ms
        heard = self._heard(node, progress.epoch)
        voters = node.log.voters
        having = [
            int(v.key.node_id)
            for v in voters
            if node.is_voter(v)
            or node.local_ms - heard.get(v.key.node_id, -interval_ms) < interval_ms
        ]
        if len(having) >= voters.majority:
            raise Violation(
                f"node {node.node_id} resigns for want of its voters {ids(voters)}, although "
                f"{having} are heard within {interval_ms} ms"
            )

    def _heard(self, node: NodeView, epoch: Epoch) -> dict[NodeId, Millis]:
        known = self._heard_ms.get(node.node_id)
        if known is None or known[:2] != (node.incarnation, epoch):
            known = self._heard_ms[node.node_id] = node.incarnation, epoch, {}
        return known[2]


def _is_served(request: RequestReceived, update: Update) -> bool:
    """True if the leader accepted the request as that of a replica that follows it."""
    answer: Response | None = None
    for effect in update.effects:
        if isinstance(effect, SendReply) and effect.token == request.token:
            answer = effect.response
    match answer:
        case None:
            # A Fetch from a log that agrees may be parked.
            return isinstance(request.request, FetchRequest)
        case FetchResponse(error=ErrorCode.NONE, diverging=None, snapshot_id=None):
            return True
        case FetchSnapshotResponse(error=ErrorCode.NONE):
            return True
    return False
