from __future__ import annotations

from quorate.controller.authorization.authorizer import CLUSTER, topic_resource
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigResource,
    ConfigSource,
    DescribeConfigs,
    IncrementalAlterConfigs,
    ResourceType,
)


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


def test_configurations_of_brokers_are_the_clusters() -> None:
    topic, broker = (
        ConfigResource(kind, "1") for kind in (ResourceType.TOPIC, ResourceType.BROKER)
    )
    altered, described = IncrementalAlterConfigs.permission, DescribeConfigs.permission
    assert altered.of_item is not None
    assert described.of_item is not None
    for resource, expected in ((topic, topic_resource("1")), (broker, CLUSTER)):
        assert altered.of_item(ConfigAlteration(resource, ())) == expected
        assert described.of_item(resource) == expected
