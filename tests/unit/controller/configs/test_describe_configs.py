from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.configs.config_definitions import TOPIC_CONFIGS
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DescribeConfigs,
    DescribeConfigsReply,
    DescribedResource,
    IncrementalAlterConfigs,
)
from quorate.records.errors import ErrorCode
from tests.unit.controller.configs.conftest import ALL_BROKERS, BROKER, TOPIC
from tests.unit.controller.conftest import answer

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


WITHHELD = "not to be seen"


def put(cluster: Cluster, resource: ConfigResource, **values: str) -> None:
    changes = tuple(
        ConfigChange(name.replace("_", "."), AlterOperation.SET, value)
        for name, value in values.items()
    )
    reply = cluster.ask(IncrementalAlterConfigs((ConfigAlteration(resource, changes),)))
    assert reply.resources[0].error is ErrorCode.NONE


def describe(
    cluster: Cluster, *resources: ConfigResource, include_defaults: bool = False
) -> tuple[DescribedResource, ...]:
    reply = answer(cluster.image, DescribeConfigs(resources, include_defaults=include_defaults))
    assert isinstance(reply, DescribeConfigsReply)
    assert reply.offset == cluster.image.position.end_offset
    return reply.resources


def test_configs_come_with_their_source_and_secrets_without_their_value(
    cluster: Cluster,
) -> None:
    cluster.create("a", (1,))
    put(cluster, TOPIC, segment_ms="1", retention_ms="2")
    put(cluster, BROKER, ssl_key_password=WITHHELD, log_cleaner_threads="2")
    put(cluster, ALL_BROKERS, log_retention_ms="3", log_cleaner_threads="1")
    broker = ConfigSource.DYNAMIC_BROKER_CONFIG
    default = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert describe(cluster, TOPIC, BROKER, ALL_BROKERS) == (
        DescribedResource(
            TOPIC,
            entries=(
                ConfigEntry("retention.ms", "2", ConfigSource.DYNAMIC_TOPIC_CONFIG),
                ConfigEntry("segment.ms", "1", ConfigSource.DYNAMIC_TOPIC_CONFIG),
            ),
        ),
        DescribedResource(
            BROKER,
            entries=(
                ConfigEntry("log.cleaner.threads", "2", broker),
                ConfigEntry("ssl.key.password", None, broker, is_sensitive=True),
            ),
        ),
        DescribedResource(
            ALL_BROKERS,
            entries=(
                ConfigEntry("log.cleaner.threads", "1", default),
                ConfigEntry("log.retention.ms", "3", default),
            ),
        ),
    )


def test_defaults_fill_what_is_not_set(cluster: Cluster) -> None:
    cluster.create("a", (1,))
    put(cluster, TOPIC, segment_ms="1")
    put(cluster, BROKER, log_cleaner_threads="2")
    put(cluster, ALL_BROKERS, log_retention_ms="3", log_cleaner_threads="1")
    topic, broker = describe(cluster, TOPIC, BROKER, include_defaults=True)
    assert [entry.name for entry in topic.entries] == list(TOPIC_CONFIGS)
    assert {entry.name: entry.value for entry in topic.entries} == {
        name: "1" if name == "segment.ms" else spec.default for name, spec in TOPIC_CONFIGS.items()
    }
    assert broker.entries == (
        ConfigEntry("log.cleaner.threads", "2", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ConfigEntry("log.retention.ms", "3", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    )


def test_a_resource_that_does_not_exist_has_no_configs(cluster: Cluster) -> None:
    assert describe(cluster, TOPIC) == (
        DescribedResource(
            TOPIC,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "There is no topic 'a'; create it first.",
        ),
    )
