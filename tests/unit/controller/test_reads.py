from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.config_table import TOPIC_CONFIGS
from quorate.controller.reads import answer
from quorate.controller.replies import (
    ConfigEntry,
    ConfigSource,
    DescribeConfigsReply,
    DescribedPartition,
    DescribedResource,
    DescribedTopic,
    DescribeTopicsReply,
    ListBrokersReply,
    ListedBroker,
    ListedTopic,
    ListTopicsReply,
)
from quorate.controller.requests import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    DescribeConfigs,
    DescribeTopics,
    IncrementalAlterConfigs,
    ListBrokers,
    Listener,
    ListTopics,
    ResourceType,
)
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster

TOPIC = ConfigResource(ResourceType.TOPIC, "a")
BROKER = ConfigResource(ResourceType.BROKER, "1")
WITHHELD = "not to be seen"
ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")


def put(cluster: Cluster, resource: ConfigResource, **values: str) -> None:
    changes = tuple(
        ConfigChange(name.replace("_", "."), AlterOperation.SET, value)
        for name, value in values.items()
    )
    reply = cluster.ask(IncrementalAlterConfigs((ConfigAlteration(resource, changes),)))
    assert reply.resources[0].error is ErrorCode.NONE


def test_topics_are_listed_by_name_with_the_offset_that_the_list_reflects(
    cluster: Cluster,
) -> None:
    second = cluster.create("b", (1,))
    first = cluster.create("a", (1,), (2,))
    assert answer(cluster.image, ListTopics()) == ListTopicsReply(
        cluster.image.position.end_offset, (ListedTopic("a", first, 2), ListedTopic("b", second, 1))
    )


def test_a_description_has_partitions_and_what_is_set(cluster: Cluster) -> None:
    topic_id = cluster.create(
        "a", (1, 2), (2, 1), configs=(("segment.ms", "1"), ("retention.ms", "2"))
    )
    cluster.ask(cluster.heartbeat(2, want_fence=True))
    described = DescribedTopic(
        "a",
        topic_id=topic_id,
        partitions=(
            DescribedPartition(0, 1, 0, 1, (1, 2), (1,)),
            DescribedPartition(1, 1, 1, 1, (2, 1), (1,)),
        ),
        configs=(("retention.ms", "2"), ("segment.ms", "1")),
    )
    reply = answer(cluster.image, DescribeTopics(("none", "a")))
    assert reply == DescribeTopicsReply(
        cluster.image.position.end_offset,
        (
            DescribedTopic(
                "none",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "There is no topic 'none'; check its name.",
            ),
            described,
        ),
    )


def test_without_names_every_topic_is_described_in_order(cluster: Cluster) -> None:
    for name in ("b", "a", "c"):
        cluster.create(name, (1,))
    reply = answer(cluster.image, DescribeTopics())
    assert isinstance(reply, DescribeTopicsReply)
    assert [topic.name for topic in reply.topics] == ["a", "b", "c"]


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


def test_brokers_are_listed_by_id_with_their_standing(cluster: Cluster) -> None:
    cluster.ask(cluster.heartbeat(2, want_fence=True))
    reply = answer(cluster.image, ListBrokers())
    assert isinstance(reply, ListBrokersReply)
    assert [(broker.broker_id, broker.is_fenced) for broker in reply.brokers] == [
        (1, False),
        (2, True),
        (3, False),
    ]
    registration = cluster.image.brokers.by_id[1].registration
    assert reply.brokers[0] == ListedBroker(
        broker_id=1,
        broker_epoch=registration.broker_epoch,
        incarnation_id=registration.incarnation_id,
        listeners=(Listener("PLAINTEXT", "127.0.0.1", 9001),),
        rack=None,
        is_fenced=False,
        in_controlled_shutdown=False,
        log_dirs=registration.log_dirs,
    )
