from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.controller.config_table import TOPIC_CONFIGS
from quorate.controller.errors import RefusedError
from quorate.controller.reads import SLICE_ITEMS, answer, answer_in_slices
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
    Cursor,
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


# --- pages ----------------------------------------------------------------------------------------


def test_a_long_answer_comes_in_pages_that_have_everything_once(cluster: Cluster) -> None:
    for number in range(7):
        cluster.create(f"t{number}", (1,), (2,), (1,))
    seen: list[tuple[str, int]] = []
    request = DescribeTopics(response_partition_limit=2)
    while True:
        reply = answer(cluster.image, request)
        assert isinstance(reply, DescribeTopicsReply)
        page = [(topic.name, p.partition) for topic in reply.topics for p in topic.partitions]
        assert len(page) <= 2
        seen += page
        if reply.next_cursor is None:
            break
        request = replace(request, cursor=reply.next_cursor)
    assert seen == [(f"t{number}", partition) for number in range(7) for partition in range(3)]


def test_named_topics_come_in_pages_in_the_order_asked_each_once(cluster: Cluster) -> None:
    for name in ("a", "b"):
        cluster.create(name, (1,))
    request = DescribeTopics(("b", "x", "b", "a"), response_partition_limit=1)
    names = []
    while True:
        reply = answer(cluster.image, request)
        assert isinstance(reply, DescribeTopicsReply)
        names += [topic.name for topic in reply.topics]
        cursor = reply.next_cursor
        if cursor is None:
            break
        request = replace(request, cursor=cursor)
    assert names == ["b", "x", "a"]


def test_a_list_comes_in_pages(cluster: Cluster) -> None:
    for name in ("c", "a", "b"):
        cluster.create(name, (1,))
    first = answer(cluster.image, ListTopics(response_topic_limit=2))
    assert isinstance(first, ListTopicsReply)
    assert ([topic.name for topic in first.topics], first.next_cursor) == (["a", "b"], Cursor("c"))
    rest = answer(cluster.image, ListTopics(first.next_cursor, 2))
    assert isinstance(rest, ListTopicsReply)
    assert ([topic.name for topic in rest.topics], rest.next_cursor) == (["c"], None)


def test_a_part_is_not_given_to_whoever_asked_for_the_whole(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.controller.reads.PARTITIONS_PER_PAGE", 2)
    monkeypatch.setattr("quorate.controller.reads.TOPICS_PER_PAGE", 2)
    for name in ("c", "a", "b"):
        cluster.create(name, (1,))
    with pytest.raises(RefusedError, match="more than one page of 2; set response_partition_limit"):
        answer(cluster.image, DescribeTopics())
    with pytest.raises(RefusedError, match="more than one page of 2; set response_topic_limit"):
        answer(cluster.image, ListTopics())


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (DescribeTopics(("a",), Cursor("b"), 1), "The cursor's topic 'b' is none of the names"),
        (DescribeTopics(response_partition_limit=-1), "response_partition_limit is -1; give 1"),
        (ListTopics(response_topic_limit=-1), "response_topic_limit is -1; give 1 or more"),
    ],
)
def test_a_page_that_is_none_is_refused(
    cluster: Cluster, request_: DescribeTopics | ListTopics, words: str
) -> None:
    with pytest.raises(RefusedError, match=words):
        answer(cluster.image, request_)


def test_a_long_answer_lets_others_run_after_so_many_items(cluster: Cluster) -> None:
    cluster.create("a", *[(1,)] * (SLICE_ITEMS * 3))
    slices = answer_in_slices(cluster.image, DescribeTopics())
    assert sum(1 for _ in slices) == 3
