"""Brokers' sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    RegisterBroker,
    RegisterBrokerReply,
)
from quorate.records.errors import ErrorCode
from quorate.records.metadata import BrokerRegistrationChangeRecord
from quorate.sim.invariants.invariant import Invariant
from quorate.sim.oracle import Violation
from quorate.sim.patience import slowest_call_us

if TYPE_CHECKING:
    from quorate.controller.decision import Decision
    from quorate.controller.requests import WriteRequest
    from quorate.records.ids import Epoch, Millis, NodeId
    from quorate.sim.seen import Node, World

# A new controller looks through everything first; a timer may be late by a turn.
SLACK_MS: Final = 500
_FENCES: Final = 1


class SessionsEndInTime(Invariant):
    """A broker is fenced when it has been silent for a session, by the active controller, and only
    then.

    Each controller counts from when it was heard there, or from when it became active; a broker
    that asks to go may be fenced at once. Source: KIP-631, "Broker heartbeats".
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        # Of each node, the epoch in which it is active, since when, and when it heard which broker.
        self._active: dict[NodeId, tuple[int, Epoch, Millis]] = {}
        self._heard_ms: dict[NodeId, dict[int, Millis]] = {}
        self._troubles: dict[NodeId, int] = {}

    def stopped(self, node: Node) -> None:
        self._active.pop(node.node_id, None)
        self._heard_ms.pop(node.node_id, None)

    def decided(self, node: Node, request: WriteRequest, decision: Decision) -> None:
        match request, decision.reply:
            case BrokerHeartbeat(), BrokerHeartbeatReply(error=ErrorCode.NONE):
                self._hear(node, request.broker_id)
            case RegisterBroker(), RegisterBrokerReply(error=ErrorCode.NONE):
                self._hear(node, request.broker_id)

    def _hear(self, node: Node, broker_id: int) -> None:
        self._note(node)
        self._heard_ms[node.node_id][broker_id] = node.local_ms

    def _note(self, node: Node) -> None:
        """Whether it is active, in a new epoch: then all sessions begin."""
        epoch, known = node.active_epoch, self._active.get(node.node_id)
        if epoch is None:
            self.stopped(node)
        elif known is None or known[:2] != (node.incarnation, epoch):
            self._active[node.node_id] = node.incarnation, epoch, node.local_ms
            self._heard_ms[node.node_id] = {}

    def expired(self, node: Node, decision: Decision) -> None:
        """What nobody asked for: sessions are over."""
        self._note(node)
        heard_ms = self._heard_ms.get(node.node_id, {})
        timeout_ms = self.world.options.session_timeout_ms
        for record in decision.records:
            if not isinstance(record, BrokerRegistrationChangeRecord) or record.fenced != _FENCES:
                continue
            since_ms = heard_ms.get(record.broker_id)
            if since_ms is not None and node.local_ms - since_ms < timeout_ms:
                raise Violation(
                    f"node {node.node_id} fences broker {record.broker_id}, which it heard "
                    f"{node.local_ms - since_ms} ms ago"
                )

    def looked(self) -> None:
        if not self.world.options.brokers:
            return
        for node in self.world.running():
            troubles = self._troubles.get(node.node_id)
            self._troubles[node.node_id] = node.troubles
            self._note(node)
            if troubles != node.troubles or not node.is_stepped or node.is_stopping:
                # After a pause in which nobody could be heard sessions begin anew.
                self._active.pop(node.node_id, None)
            elif node.node_id in self._active:
                self._judge(node)

    def _judge(self, node: Node) -> None:
        _, epoch, active_ms = self._active[node.node_id]
        heard_ms = self._heard_ms[node.node_id]
        options = self.world.options
        # The last decision has to be committed first; without a majority its leader resigns.
        commit_ms = 3 * options.fetch_timeout_ms + 2 * slowest_call_us(options) // 1000
        limit_ms = options.session_timeout_ms + commit_ms + options.linger_ms + SLACK_MS
        for broker_id, broker in node.image.brokers.by_id.items():
            if broker.registration.fenced:
                continue
            since_ms = max(active_ms, heard_ms.get(broker_id, active_ms))
            if node.local_ms - since_ms > limit_ms:
                raise Violation(
                    f"node {node.node_id} is the active controller of epoch {epoch}, and has not "
                    f"fenced broker {broker_id}, silent for {node.local_ms - since_ms} ms"
                )
