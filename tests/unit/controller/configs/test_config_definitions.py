from __future__ import annotations

import pytest

from quorate.controller.configs.config_definitions import (
    TOPIC_CONFIGS,
    is_sensitive,
    list_items,
    topic_config_problem,
)


def test_every_default_is_valid() -> None:
    problems = {name: spec.problem(spec.default) for name, spec in TOPIC_CONFIGS.items()}
    assert problems == dict.fromkeys(TOPIC_CONFIGS)
    assert list(TOPIC_CONFIGS) == sorted(TOPIC_CONFIGS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-1"),
        ("retention.ms", " 60000 "),
        ("retention.ms", "9223372036854775807"),
        ("min.cleanable.dirty.ratio", "1"),
        ("min.cleanable.dirty.ratio", ".25"),
        ("min.cleanable.dirty.ratio", "5e-1"),
        ("preallocate", "TRUE"),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", ""),
        ("compression.type", "zstd"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,12:3"),
    ],
)
def test_what_kafka_takes_is_taken(name: str, value: str) -> None:
    assert TOPIC_CONFIGS[name].problem(value) is None


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("retention.ms", "-2", "a whole number from -1 to 9223372036854775807"),
        ("retention.ms", "7d", "a whole number from -1 to 9223372036854775807"),
        ("retention.ms", "9223372036854775808", "a whole number from -1 to 9223372036854775807"),
        ("segment.bytes", "1024", "a whole number from 1048576 to 2147483647"),
        ("min.cleanable.dirty.ratio", "1.01", "a number from 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "a number from 0 to 1"),
        ("preallocate", "yes", "true or false"),
        ("cleanup.policy", "compact,keep", "a list of compact, delete, each once"),
        ("cleanup.policy", "delete,delete", "a list of compact, delete, each once"),
        ("message.timestamp.type", "Now", "one of CreateTime, LogAppendTime"),
        (
            "follower.replication.throttled.replicas",
            "1-2",
            "'*' or a list of partition:broker",
        ),
    ],
)
def test_anything_else_is_told_what_it_must_be(name: str, value: str, problem: str) -> None:
    assert TOPIC_CONFIGS[name].problem(value) == problem


def test_lists_can_be_appended_to() -> None:
    lists = [name for name, spec in TOPIC_CONFIGS.items() if spec.is_list]
    assert lists == [
        "cleanup.policy",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    ]


def test_blanks_around_items_do_not_count() -> None:
    assert list_items(" a , b") == ["a", "b"]
    assert list_items(" ") == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.x.sasl.jaas.config", True),
        ("ssl.keystore.key", True),
        ("log.cleaner.threads", False),
        ("retention.ms", False),
    ],
)
def test_secrets_are_known_by_their_names(name: str, *, expected: bool) -> None:
    assert is_sensitive(name) is expected


def test_good_configs_of_a_topic_have_no_problem() -> None:
    assert topic_config_problem([("retention.ms", "-1"), ("preallocate", "true")]) is None
