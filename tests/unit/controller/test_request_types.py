from __future__ import annotations

from quorate.controller.brokers.messages import BrokerHeartbeat, BrokerHeartbeatReply
from quorate.controller.request_types import ReadRequest, WriteReply, WriteRequest


def test_answers_have_to_be_true_unless_nobody_could_miss_them() -> None:
    assert WriteRequest.has_to_be_true
    assert not BrokerHeartbeat.has_to_be_true


def test_an_answer_has_one_page_unless_its_request_says_otherwise() -> None:
    assert ReadRequest.pages is None


def test_replies_have_fields_and_nothing_beside_them() -> None:
    assert WriteReply.__slots__ == ()
    assert not hasattr(BrokerHeartbeatReply(), "__dict__")
