from __future__ import annotations

from quorate.controller.brokers.messages import BrokerHeartbeatReply
from quorate.records.errors import ErrorCode


def test_a_broker_is_fenced_unless_the_answer_says_otherwise() -> None:
    assert BrokerHeartbeatReply(ErrorCode.STALE_BROKER_EPOCH).is_fenced
