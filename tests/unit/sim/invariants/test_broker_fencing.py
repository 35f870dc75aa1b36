"""The invariant of brokers' sessions: its violations, and what it accepts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.controller.brokers.messages import BrokerHeartbeat, BrokerHeartbeatReply
from quorate.records.ids import Offset
from quorate.records.metadata import BrokerRegistrationChangeRecord
from quorate.sim.checkers.oracle import Violation
from quorate.sim.invariants.broker_fencing import SessionsEndInTime

FENCED = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1)
BEAT = BrokerHeartbeat(
    broker_id=1, broker_epoch=5, current_metadata_offset=Offset(1), want_shut_down=True
)


def test_a_new_controller_gives_each_broker_a_session(node: Any, world: Any) -> None:  # noqa: ANN401
    judge = SessionsEndInTime(world)
    node.active_epoch = None
    judge.on_tick()
    node.active_epoch = 3
    node.local_ms += 100
    judge.on_tick()
    node.local_ms += 100
    decision: Any = SimpleNamespace(records=(FENCED,), end_offset=Offset(9))
    with pytest.raises(Violation, match="was not the active controller 200 ms ago"):
        judge.expired(node, decision)


def test_a_broker_that_an_old_heartbeat_lets_go_is_fenced(node: Any, world: Any) -> None:  # noqa: ANN401
    judge = SessionsEndInTime(world)
    judge.on_tick()
    node.waiting = [SimpleNamespace(request=BEAT, since_ms=node.local_ms, end=None)]
    node.local_ms += 2 * world.options.timeouts.session_timeout_ms
    reply = BrokerHeartbeatReply(is_caught_up=True, is_fenced=True, should_shut_down=True)
    judge.decided(node, BEAT, SimpleNamespace(reply=reply))  # type: ignore[arg-type]
    node.waiting = []
    node.local_ms += 600_000
    node.troubles = 0
    judge.on_tick()
