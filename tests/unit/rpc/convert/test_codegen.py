"""One function for each message: what it takes, what it leaves out, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.brokers import messages as of_brokers
from quorate.controller.configs import messages as of_configs
from quorate.controller.message_registry import ITEMS_MAX
from quorate.controller.topics import messages as of_topics
from quorate.records.errors import ErrorCode
from quorate.rpc.convert.codegen import (
    check_count,
    dataclass_named,
    field_names,
    items_max,
    make_filler,
    make_reader,
)
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb


def test_a_message_is_a_value_of_its_name() -> None:
    message = pb.ConfigAlteration(
        resource=pb.ConfigResource(type=4, name=""),
        changes=[pb.ConfigChange(name="a", value=""), pb.ConfigChange(name="b", operation=1)],
    )
    assert make_reader("ConfigAlteration")(message) == of_configs.ConfigAlteration(
        of_configs.ConfigResource(of_configs.ResourceType.BROKER, ""),
        (
            of_configs.ConfigChange("a", of_configs.AlterOperation.SET, ""),
            of_configs.ConfigChange("b", of_configs.AlterOperation.DELETE, None),
        ),
    )


def test_a_function_is_made_once() -> None:
    assert make_reader("NewTopic") is make_reader("NewTopic")
    assert make_filler("CreatedTopic") is make_filler("CreatedTopic")


def test_a_field_may_be_given_beside_the_message() -> None:
    topic = make_reader("NewTopic", "assignments")(pb.NewTopic(name="t", partitions=3), ((1, 2),))
    assert topic == of_topics.NewTopic("t", 3, 0, ((1, 2),))


def test_what_is_inside_an_envelope_is_there_even_if_empty() -> None:
    result = pb.WriteResult()
    make_filler("DeleteTopicsReply", "delete_topics")(result, of_topics.DeleteTopicsReply(()))
    assert result.WhichOneof("reply") == "delete_topics"
    message = pb.ListTopics()
    make_filler("ListTopics")(message, of_topics.ListTopics(of_topics.Cursor("")))
    assert message.HasField("cursor")


def test_what_is_empty_and_what_is_absent_are_told_apart() -> None:
    for rack in (None, "", "r"):
        broker = of_brokers.ListedBroker(
            1, 2, b"", (), rack, is_fenced=True, in_controlled_shutdown=True
        )
        message = pb.ListedBroker()
        make_filler("ListedBroker")(message, broker)
        assert message.HasField("rack") == (rack is not None)
        assert make_reader("ListedBroker")(message) == broker


def test_a_code_of_a_later_release_is_an_unknown_error() -> None:
    reply = make_reader("UnregisterBrokerReply")(pb.UnregisterBrokerReply(error=9999))
    assert reply == of_brokers.UnregisterBrokerReply(ErrorCode.UNKNOWN_SERVER_ERROR)


def test_names_and_bounds_are_those_of_the_schema() -> None:
    assert dataclass_named("Cursor") is of_topics.Cursor
    assert dataclass_named("ListedTopic") is of_topics.ListedTopic
    assert field_names("ListedTopic") == ("name", "topic_id", "partitions")
    assert items_max("DeleteTopics", "names") == ITEMS_MAX
    assert items_max("NewTopic", "configs") == 100
    assert items_max("DeleteTopicsReply", "topics") is None
    check_count("here", 5, 5)
    with pytest.raises(ValueError, match="here: 6 items where a request may have 5: send several"):
        check_count("here", 6, 5)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (pb.DeleteTopics(names=[""] * 1001), "DeleteTopics.names: 1001 items where a request may"),
        (pb.DescribeTopics(names=["a"] * 200_000), "DescribeTopics.names: 200000 items where"),
        (pb.CreateTopics(topics=[pb.NewTopic()] * 1001), "CreateTopics.topics: 1001 items where"),
        (pb.NewTopic(assignments=[pb.Replicas(ids=range(101))]), "Replicas.ids: 101 items where"),
        (pb.RegisterBroker(rack="r" * 32_768), "RegisterBroker.rack: has 32768 bytes and may have"),
        (pb.ConfigAlteration(), "ConfigAlteration.resource: it is missing"),
        (pb.ConfigResource(type=3), "ConfigResource.type: 3 is none of 2 TOPIC, 4 BROKER"),
        (pb.ConfigChange(operation=-1), "ConfigChange.operation: -1 is none of 0 SET, 1 DELETE"),
    ],
)
def test_what_is_too_long_or_missing_is_named(request_: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=words):
        make_reader(type(request_).__name__)(request_)


def test_a_reply_may_be_as_long_as_what_it_tells_of() -> None:
    reply = of_topics.DeleteTopicsReply(
        (of_topics.DeletedTopic("t", ErrorCode.NONE, "x" * 40_000),) * 2000
    )
    message = pb.DeleteTopicsReply()
    make_filler("DeleteTopicsReply")(message, reply)
    assert make_reader("DeleteTopicsReply")(message) == reply
