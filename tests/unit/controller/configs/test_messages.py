from __future__ import annotations

from quorate.controller.configs.messages import AlterOperation, ConfigSource, ResourceType


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


def test_sources_have_the_numbers_of_describe_configs() -> None:
    assert {source.name: source.value for source in ConfigSource} == {
        "DYNAMIC_TOPIC_CONFIG": 1,
        "DYNAMIC_BROKER_CONFIG": 2,
        "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
        "DEFAULT_CONFIG": 5,
    }
