"""The judge of brokers' sessions: what it objects to, and what it lets pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.controller.brokers.messages import BrokerHeartbeat, BrokerHeartbeatReply
from quorate.records.ids import Offset
from quorate.records.metadata import BrokerRegistrationChangeRecord
from quorate.sim.invariants.answering import EverybodyIsAnswered
from quorate.sim.invariants.fencing import SessionsEndInTime
from quorate.sim.mix import draw_mix
from quorate.sim.oracle import Violation

FENCED = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1)
BEAT = BrokerHeartbeat(
    broker_id=1, broker_epoch=5, current_metadata_offset=Offset(1), want_shut_down=True
)


@pytest.fixture
def node() -> Any:  # noqa: ANN401 - as much of a node as the judges look at
    """An active controller with one broker, which is unfenced."""
    registration = SimpleNamespace(fenced=False, broker_epoch=5)
    brokers = SimpleNamespace(by_id={1: SimpleNamespace(registration=registration)})
    return SimpleNamespace(
        node_id=1,
        incarnation=1,
        active_epoch=3,
        local_ms=100_000,
        waiting=[],
        image=SimpleNamespace(brokers=brokers),
        troubles=0,
        is_stepped=True,
        is_stopping=False,
        progress=None,
    )


@pytest.fixture
def world(node: Any) -> Any:  # noqa: ANN401 - as above
    return SimpleNamespace(options=draw_mix(1), running=lambda: [node])


def test_a_new_controller_gives_each_broker_a_session(node: Any, world: Any) -> None:  # noqa: ANN401
    judge = SessionsEndInTime(world)
    judge.looked()
    decision: Any = SimpleNamespace(records=(FENCED,), end_offset=Offset(9))
    with pytest.raises(Violation, match="ms after it became the active controller"):
        judge.expired(node, decision)


def test_a_broker_that_an_old_heartbeat_lets_go_is_fenced(node: Any, world: Any) -> None:  # noqa: ANN401
    judge = SessionsEndInTime(world)
    judge.looked()
    node.waiting = [SimpleNamespace(request=BEAT, since_ms=node.local_ms, end=None)]
    node.local_ms += 2 * world.options.timeouts.session_timeout_ms
    reply = BrokerHeartbeatReply(is_caught_up=True, is_fenced=True, should_shut_down=True)
    judge.decided(node, BEAT, SimpleNamespace(reply=reply))  # type: ignore[arg-type]
    node.waiting = []
    node.local_ms += 600_000
    node.troubles = 0
    judge.looked()


def test_what_was_decided_in_another_term_stands_in_nobodys_way(node: Any, world: Any) -> None:  # noqa: ANN401
    judge = EverybodyIsAnswered(world)
    lost: Any = SimpleNamespace(end_offset=Offset(100 + judge._ahead_max))
    judge.decided(node, BEAT, lost)
    node.log = SimpleNamespace(end=SimpleNamespace(offset=Offset(100)))
    node.progress = SimpleNamespace(high_watermark=Offset(100))
    node.active_epoch = 9
    waiting: Any = SimpleNamespace(since_ms=1, epoch=9, end=None)
    assert judge._why_due(node, waiting) == "nothing stands in the way of a decision"
