from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.configs.messages import (
    AlteredResource,
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    IncrementalAlterConfigsReply,
    ResourceType,
)
from quorate.controller.request_types import RECORDS_MAX
from quorate.records.errors import ErrorCode
from quorate.records.metadata import ConfigRecord
from tests.unit.controller.configs.conftest import ALL_BROKERS, BROKER, TOPIC, alter, put

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


SET, DELETE, APPEND, SUBTRACT = AlterOperation


def record(name: str, value: str | None, resource: ConfigResource = TOPIC) -> ConfigRecord:
    return ConfigRecord(
        resource_type=resource.type, resource_name=resource.name, name=name, value=value
    )


def refusal(cluster: Cluster, request: IncrementalAlterConfigs) -> tuple[ErrorCode, str]:
    before = cluster.image
    reply = cluster.ask(request)
    assert cluster.image == before
    return reply.resources[0].error, reply.resources[0].message


def test_only_keys_that_change_are_written(topic: Cluster) -> None:
    records = topic.records(
        alter(
            put("retention.ms", "1000"),
            put("segment.ms", "5"),
            ConfigChange("cleanup.policy", DELETE),
            ConfigChange("flush.ms", DELETE),
        )
    )
    assert records == (record("segment.ms", "5"), record("cleanup.policy", None))
    assert dict(topic.image.configs.of((2, "a"))) == {"retention.ms": "1000", "segment.ms": "5"}


def test_lists_grow_and_shrink_by_item(topic: Cluster) -> None:
    append = ConfigChange("cleanup.policy", APPEND, "delete,compact")
    assert topic.records(alter(append)) == (record("cleanup.policy", "compact,delete"),)
    subtract = ConfigChange("cleanup.policy", SUBTRACT, "compact")
    assert topic.records(alter(subtract)) == (record("cleanup.policy", "delete"),)


def test_a_list_that_is_not_set_begins_with_its_default(topic: Cluster) -> None:
    topic.ask(alter(ConfigChange("cleanup.policy", DELETE)))
    append = ConfigChange("cleanup.policy", APPEND, "compact")
    assert topic.records(alter(append)) == (record("cleanup.policy", "delete,compact"),)


def test_brokers_take_names_that_topics_do_not(topic: Cluster) -> None:
    threads = put("log.cleaner.threads", "2")
    for resource in (BROKER, ALL_BROKERS):
        expected = (record("log.cleaner.threads", "2", resource),)
        assert topic.records(alter(threads, resource=resource)) == expected
    protocols = ConfigChange("ssl.enabled.protocols", APPEND, "TLSv1.3")
    assert topic.records(alter(protocols, resource=BROKER)) == (
        record("ssl.enabled.protocols", "TLSv1.3", BROKER),
    )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            [put("retention", "1")],
            ErrorCode.INVALID_CONFIG,
            "There is no topic configuration 'retention'; check its spelling.",
        ),
        (
            [put("flush.ms", "1"), put("segment.ms", "x")],
            ErrorCode.INVALID_CONFIG,
            "The value 'x' of segment.ms is invalid; it must be a whole number from 1 to"
            " 9223372036854775807.",
        ),
        (
            [ConfigChange("segment.ms", SET)],
            ErrorCode.INVALID_REQUEST,
            "SET of 'segment.ms' needs a value; give one or DELETE it.",
        ),
        (
            [ConfigChange("segment.ms", APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "APPEND works on lists, and 'segment.ms' is none; SET it.",
        ),
        (
            [put("segment.ms", "1"), ConfigChange("segment.ms", DELETE)],
            ErrorCode.INVALID_REQUEST,
            "The key 'segment.ms' occurs twice; change it once.",
        ),
    ],
)
def test_a_change_that_is_wrong_changes_nothing_and_names_the_key(
    topic: Cluster, changes: list[ConfigChange], error: ErrorCode, message: str
) -> None:
    assert refusal(topic, alter(*changes)) == (error, message)


@pytest.mark.parametrize(
    ("resource", "error", "message"),
    [
        (
            ConfigResource(ResourceType.TOPIC, "b"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "There is no topic 'b'; create it first.",
        ),
        (
            ConfigResource(ResourceType.BROKER, "9"),
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "No broker is registered with the id 9; register it first.",
        ),
        (
            ConfigResource(ResourceType.BROKER, "one"),
            ErrorCode.INVALID_REQUEST,
            "The broker 'one' is not an id; give its number, or '' for all brokers.",
        ),
        (
            ConfigResource(ResourceType.GROUP, "g"),
            ErrorCode.INVALID_REQUEST,
            "Configurations of GROUP are not kept here; name a topic or a broker.",
        ),
    ],
)
def test_a_resource_that_does_not_exist_is_refused(
    topic: Cluster, resource: ConfigResource, error: ErrorCode, message: str
) -> None:
    assert refusal(topic, alter(put("a", "1"), resource=resource)) == (error, message)


def test_broker_configs_need_a_name(topic: Cluster) -> None:
    assert refusal(topic, alter(put("a b", "1"), resource=BROKER)) == (
        ErrorCode.INVALID_CONFIG,
        "'a b' is no name of a configuration; use letters, digits, '.', '_' and '-'.",
    )
    append = ConfigChange("log.cleaner.threads", APPEND, "1")
    assert refusal(topic, alter(append, resource=BROKER))[0] is ErrorCode.INVALID_CONFIG


def test_resources_succeed_and_fail_one_by_one(topic: Cluster) -> None:
    other = ConfigResource(ResourceType.TOPIC, "b")
    request = IncrementalAlterConfigs(
        (
            ConfigAlteration(BROKER, (put("x", "1"),)),
            ConfigAlteration(other, (put("flush.ms", "1"),)),
            ConfigAlteration(TOPIC, (put("flush.ms", "1"),)),
            ConfigAlteration(BROKER, (put("y", "1"),)),
        )
    )
    twice = "BROKER '1' occurs twice in the request; name it once."
    decision = topic.decide(request)
    assert decision.records == (record("flush.ms", "1"),)
    assert decision.reply == IncrementalAlterConfigsReply(
        (
            AlteredResource(BROKER, ErrorCode.INVALID_REQUEST, twice),
            AlteredResource(
                other,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "There is no topic 'b'; create it first.",
            ),
            AlteredResource(TOPIC),
            AlteredResource(BROKER, ErrorCode.INVALID_REQUEST, twice),
        )
    )


def test_what_does_not_fit_into_one_batch_is_to_be_split(topic: Cluster) -> None:
    many = [put(f"key.{number}", "1") for number in range(RECORDS_MAX + 1)]
    error, message = refusal(topic, alter(*many, resource=BROKER))
    assert error is ErrorCode.POLICY_VIOLATION
    assert message.startswith("The change of BROKER '1' does not fit into one batch")


def test_validation_answers_as_the_change_would_and_writes_nothing(topic: Cluster) -> None:
    alterations = (ConfigAlteration(TOPIC, (put("flush.ms", "1"),)),)
    decision = topic.decide(IncrementalAlterConfigs(alterations, validate_only=True))
    assert decision.records == ()
    assert decision.reply == IncrementalAlterConfigsReply((AlteredResource(TOPIC),))
    alterations = (ConfigAlteration(TOPIC, (put("flush.ms", "x"),)),)
    reply = topic.ask(IncrementalAlterConfigs(alterations, validate_only=True))
    assert reply.resources[0].error is ErrorCode.INVALID_CONFIG
