from __future__ import annotations

from quorate.controller.replies import BrokerHeartbeatReply, ConfigSource, CreatedTopic
from quorate.records.errors import ErrorCode


def test_an_item_is_a_success_unless_it_says_otherwise() -> None:
    assert CreatedTopic("a") == CreatedTopic("a", ErrorCode.NONE, "", None, -1, -1)


def test_a_broker_is_fenced_unless_the_answer_says_otherwise() -> None:
    assert BrokerHeartbeatReply(ErrorCode.STALE_BROKER_EPOCH).is_fenced


def test_sources_have_the_numbers_of_describe_configs() -> None:
    assert {source.name: source.value for source in ConfigSource} == {
        "DYNAMIC_TOPIC_CONFIG": 1,
        "DYNAMIC_BROKER_CONFIG": 2,
        "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
        "DEFAULT_CONFIG": 5,
    }
