from __future__ import annotations

from quorate.controller.authorization.authorizer import topic_resource
from quorate.controller.topics.messages import CreatedTopic, CreateTopics, DeleteTopics, NewTopic
from quorate.records.errors import ErrorCode


def test_a_request_is_a_value() -> None:
    request = CreateTopics((NewTopic("a"),))
    assert request == CreateTopics((NewTopic("a", partitions=-1, replication_factor=-1),))


def test_an_item_is_a_success_unless_it_says_otherwise() -> None:
    assert CreatedTopic("a") == CreatedTopic("a", ErrorCode.NONE, "", None, -1, -1)


def test_each_topic_may_be_judged_by_its_name() -> None:
    created, deleted = CreateTopics.permission, DeleteTopics.permission
    assert created.of_item is not None
    assert deleted.of_item is not None
    assert created.of_item(NewTopic("a")) == deleted.of_item("a") == topic_resource("a")
