"""The invariant of responses: those that it takes for due."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from quorate.controller.brokers.messages import BrokerHeartbeat
from quorate.records.ids import Offset
from quorate.sim.invariants.responses import RequestsAreAnswered

BEAT = BrokerHeartbeat(broker_id=1, broker_epoch=5, current_metadata_offset=Offset(1))


def test_what_was_decided_in_another_term_stands_in_nobodys_way(node: Any, world: Any) -> None:  # noqa: ANN401
    judge = RequestsAreAnswered(world)
    lost: Any = SimpleNamespace(end_offset=Offset(100 + judge._ahead_max))
    judge.decided(node, BEAT, lost)
    node.log = SimpleNamespace(end=SimpleNamespace(offset=Offset(100)))
    node.progress = SimpleNamespace(high_watermark=Offset(100))
    node.active_epoch = 9
    waiting: Any = SimpleNamespace(since_ms=1, epoch=9, end=None)
    assert judge._why_due(node, waiting) == "nothing stands in the way of a decision"
