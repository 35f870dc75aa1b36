from __future__ import annotations

from quorate.controller.brokers.messages import BrokerHeartbeatReply
from quorate.controller.replies import WriteReply


def test_replies_have_fields_and_nothing_beside_them() -> None:
    assert WriteReply.__slots__ == ()
    assert not hasattr(BrokerHeartbeatReply(), "__dict__")
