"""Brokers are fenced when their session has expired, and only then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    RegisterBroker,
    RegisterBrokerReply,
    UnregisterBroker,
    UnregisterBrokerReply,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis
from quorate.records.metadata import BrokerRegistrationChangeRecord
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.time_bounds import slowest_call_us

if TYPE_CHECKING:
    from quorate.controller.decision import Decision
    from quorate.controller.request_types import WriteRequest
    from quorate.records.ids import Epoch, NodeId, Offset
    from quorate.sim.views import ClusterView, NodeView

# A new controller first checks all brokers; a timer may be late by one event-loop iteration.
SLACK_MS: Final = 500
_LONG_AGO_MS: Final = Millis(-(1 << 62))
_FENCES: Final = 1


@dataclass(slots=True)
class _ActiveTerm:
    """The decisions of an active controller in its epoch, with times by its own clock.

    `began_ms` is the last time when it was observed and not active. Sessions count from `since_ms`.
    `heard_ms` has the time of each broker's last heartbeat; its session may have started as late as
    `spared_ms`. `awaited` is the end of the last periodic decision: until that is committed, at
    `free_ms`, no other one is made.
    """

    incarnation: int
    epoch: Epoch
    began_ms: Millis
    since_ms: Millis
    heard_ms: dict[int, Millis] = field(default_factory=dict)
    spared_ms: dict[int, Millis] = field(default_factory=dict)
    is_fenced: dict[int, bool] = field(default_factory=dict)
    awaited: Offset | None = None
    free_ms: Millis = Millis(0)


class SessionsEndInTime(Invariant):
    """The active controller fences a broker when its session has expired, and only then.

    A session counts from the last heartbeat that this controller received, or from when it became
    active. A broker that requests to shut down may be fenced immediately. While a heartbeat waits
    for its decision, the broker has one more session timeout, and after the decision a full one.
    The time of the decision counts: a commit takes as long as the slowest voter of a majority, and
    only the next periodic decision waits for it. Sources: KIP-631, "Broker heartbeats";
    docs/decisions/0010.
    """

    def __init__(self, world: ClusterView) -> None:
        super().__init__(world)
        self._active: dict[NodeId, _ActiveTerm] = {}
        self._troubles: dict[NodeId, int] = {}
        self._looked_ms: dict[NodeId, Millis] = {}
        timeouts = world.options.timeouts
        self._timeout_ms = timeouts.session_timeout_ms
        self._pause_ms = min(timeouts.check_quorum_timeout_ms, self._timeout_ms)

    def stopped(self, node: NodeView) -> None:
        self._active.pop(node.node_id, None)
        self._looked_ms.pop(node.node_id, None)

    def decided(self, node: NodeView, request: WriteRequest, decision: Decision) -> None:
        match request, decision.reply:
            case BrokerHeartbeat(), BrokerHeartbeatReply(error=ErrorCode.NONE) as reply:
                came_ms = _waiting_since_ms(node, request).get(request.broker_id, node.local_ms)
                self._hear(node, request.broker_id, came_ms, is_fenced=reply.is_fenced)
            case RegisterBroker(), RegisterBrokerReply(error=ErrorCode.NONE):
                self._hear(node, request.broker_id, node.local_ms, is_fenced=True)
            case UnregisterBroker(), UnregisterBrokerReply(error=ErrorCode.NONE):
                active = self._note(node)
                if active is not None:
                    active.is_fenced[request.broker_id] = True

    def _hear(self, node: NodeView, broker_id: int, came_ms: Millis, *, is_fenced: bool) -> None:
        active = self._note(node)
        if active is None:
            return
        active.is_fenced[broker_id] = is_fenced
        fresh_ms = node.local_ms - 2 * self._timeout_ms
        if came_ms > fresh_ms:
            active.heard_ms[broker_id] = node.local_ms
        # A heartbeat that arrived before a long pause counts from the end of the pause.
        if max(came_ms, active.since_ms) > fresh_ms:
            active.spared_ms[broker_id] = node.local_ms

    def _note(self, node: NodeView) -> _ActiveTerm | None:
        """The term of an active controller, else None; in a new epoch all sessions start over."""
        epoch, known = node.active_epoch, self._active.get(node.node_id)
        if epoch is None:
            self._active.pop(node.node_id, None)
            return None
        if known is None or (known.incarnation, known.epoch) != (node.incarnation, epoch):
            began_ms = self._looked_ms.get(node.node_id, _LONG_AGO_MS)
            known = _ActiveTerm(node.incarnation, epoch, began_ms, node.local_ms)
            self._active[node.node_id] = known
        return known

    def expired(self, node: NodeView, decision: Decision) -> None:
        """Check a periodic decision: sessions have expired."""
        active = self._note(node)
        if active is None or not decision.records:
            return
        active.awaited = decision.end_offset
        timeout_ms, waits_ms = self._timeout_ms, _waiting_since_ms(node)
        for record in decision.records:
            if not isinstance(record, BrokerRegistrationChangeRecord) or record.fenced != _FENCES:
                continue
            active.is_fenced[record.broker_id] = True
            since_ms = active.heard_ms.get(record.broker_id)
            if since_ms is not None and node.local_ms - since_ms < timeout_ms:
                raise Violation(
                    f"node {node.node_id} fences broker {record.broker_id}, which it heard "
                    f"{node.local_ms - since_ms} ms ago"
                )
            if since_ms is None and node.local_ms - active.began_ms < timeout_ms:
                raise Violation(
                    f"node {node.node_id} fences broker {record.broker_id}, and was not the active "
                    f"controller {node.local_ms - active.began_ms} ms ago"
                )
            came_ms = waits_ms.get(record.broker_id)
            if came_ms is not None and node.local_ms - came_ms < 2 * timeout_ms:
                raise Violation(
                    f"node {node.node_id} fences broker {record.broker_id}, whose heartbeat has "
                    f"waited for {node.local_ms - came_ms} ms"
                )

    def on_tick(self) -> None:
        if not self.world.options.fleet.brokers:
            return
        for node in self.world.running():
            troubles = self._troubles.get(node.node_id)
            self._troubles[node.node_id] = node.troubles
            active = self._note(node)
            self._looked_ms[node.node_id] = node.local_ms
            if active is None:
                continue
            if troubles != node.troubles or not node.is_stepped or node.is_stopping:
                # After a long pause all sessions start over. After a shorter one the controller
                # decides by an earlier time for as long as the pause took.
                active.since_ms = node.local_ms
                active.free_ms = Millis(node.local_ms + self._pause_ms)
            else:
                self._judge(node, active)

    def _judge(self, node: NodeView, active: _ActiveTerm) -> None:
        if active.awaited is not None:
            progress = node.progress
            if progress is None or (progress.high_watermark or 0) < active.awaited:
                return
            active.awaited, active.free_ms = None, node.local_ms
        options = self.world.options
        timeout_ms, waits_ms = self._timeout_ms, _waiting_since_ms(node)
        slack_ms = SLACK_MS + 2 * slowest_call_us(options) // 1000
        for broker_id, broker in node.image.brokers.by_id.items():
            if active.is_fenced.get(broker_id, broker.registration.fenced):
                continue
            since_ms = max(active.since_ms, active.spared_ms.get(broker_id, active.since_ms))
            ends_ms = max(since_ms + timeout_ms, active.free_ms)
            if broker_id in waits_ms:
                came_ms = max(waits_ms[broker_id], active.since_ms)
                ends_ms = max(ends_ms, came_ms + 2 * timeout_ms)
            if node.local_ms > ends_ms + slack_ms:
                raise Violation(
                    f"node {node.node_id} is the active controller of epoch {active.epoch}, and "
                    f"has not fenced broker {broker_id}, silent for {node.local_ms - since_ms} ms"
                )


def _waiting_since_ms(node: NodeView, decided: WriteRequest | None = None) -> dict[int, Millis]:
    """The arrival of the newest heartbeat of each broker that waits for its decision.

    The heartbeat that is being `decided` is included.
    """
    brokers, since_ms = node.image.brokers.by_id, dict[int, Millis]()
    for one in node.waiting:
        beat = one.request
        if not isinstance(beat, BrokerHeartbeat) or one.since_ms is None:
            continue
        if one.end is not None and beat is not decided:
            continue
        broker = brokers.get(beat.broker_id)
        if broker is not None and broker.registration.broker_epoch == beat.broker_epoch:
            since_ms[beat.broker_id] = max(since_ms.get(beat.broker_id, Millis(0)), one.since_ms)
    return since_ms
