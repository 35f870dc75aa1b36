from __future__ import annotations

from quorate.controller.requests import AlterOperation, CreateTopics, NewTopic, ResourceType


def test_numbers_are_those_of_kafkas_protocol() -> None:
    assert {kind.name: kind.value for kind in ResourceType} == {
        "TOPIC": 2,
        "BROKER": 4,
        "BROKER_LOGGER": 8,
        "CLIENT_METRICS": 16,
        "GROUP": 32,
    }
    assert [operation.name for operation in sorted(AlterOperation)] == [
        "SET",
        "DELETE",
        "APPEND",
        "SUBTRACT",
    ]


def test_a_request_is_a_value() -> None:
    request = CreateTopics((NewTopic("a"),))
    assert request == CreateTopics((NewTopic("a", partitions=-1, replication_factor=-1),))
