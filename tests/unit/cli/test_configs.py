"""Config changes on the command line, and configs as they are shown."""

from __future__ import annotations

import argparse

import pytest

from quorate.cli import configs
from quorate.cli.output import CommandError
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DescribedResource,
    ResourceType,
)

SET, DELETE = AlterOperation.SET, AlterOperation.DELETE


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    configs.register(parser.add_subparsers())
    return parser.parse_args(["configs", *arguments])


def test_changes_are_split_at_commas_outside_brackets() -> None:
    changes = configs.parse_changes(["a=1,cleanup.policy=[compact,delete]", "b=x=y"], ["c,d"])
    assert changes == (
        ConfigChange("a", SET, "1"),
        ConfigChange("cleanup.policy", SET, "compact,delete"),
        ConfigChange("b", SET, "x=y"),
        ConfigChange("c", DELETE),
        ConfigChange("d", DELETE),
    )


@pytest.mark.parametrize("add", [[], ["a"], ["=1"]])
def test_a_change_that_is_none_is_refused(add: list[str]) -> None:
    with pytest.raises(CommandError, match="--add-config"):
        configs.parse_changes(add, [])


@pytest.mark.parametrize(
    ("flags", "resource"),
    [
        (("topics", "--entity-name", "t"), ConfigResource(ResourceType.TOPIC, "t")),
        (("brokers", "--entity-name", "3"), ConfigResource(ResourceType.BROKER, "3")),
        (("brokers", "--entity-default"), ConfigResource(ResourceType.BROKER, "")),
    ],
)
def test_flags_name_a_resource(flags: tuple[str, ...], resource: ConfigResource) -> None:
    assert configs.parse_resource(parsed("describe", "--entity-type", *flags)) == resource


@pytest.mark.parametrize("entity_type", ["topics", "brokers"])
def test_an_empty_name_does_not_stand_for_every_broker(entity_type: str) -> None:
    arguments = parsed("describe", "--entity-type", entity_type, "--entity-name", "")
    with pytest.raises(CommandError, match="--entity-name is empty: name one, or give --entity-d"):
        configs.parse_resource(arguments)


@pytest.mark.parametrize("keys", ["", ",", "a,", "a, ,b"])
def test_a_key_to_delete_needs_a_name(keys: str) -> None:
    with pytest.raises(CommandError, match=f"--delete-config: {keys!r} has an empty key"):
        configs.parse_changes([], [keys])


def test_topics_have_no_default_entity() -> None:
    arguments = parsed("describe", "--entity-type", "topics", "--entity-default")
    with pytest.raises(CommandError, match="--entity-default"):
        configs.parse_resource(arguments)


def test_configs_are_shown_as_kafka_shows_them() -> None:
    entries = (
        ConfigEntry("a", "1", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ConfigEntry("s", None, ConfigSource.DYNAMIC_TOPIC_CONFIG, is_sensitive=True),
    )
    described = DescribedResource(ConfigResource(ResourceType.TOPIC, "t"), entries=entries)
    assert configs.resource_lines(described, has_all=False) == [
        "Dynamic configs for topic t are:",
        "  a=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:a=1}",
        "  s=null sensitive=true synonyms={DYNAMIC_TOPIC_CONFIG:s=null}",
    ]


def test_a_value_of_several_lines_is_shown_on_one() -> None:
    entries = (ConfigEntry("a", "1\n  b=2\x1b[2J", ConfigSource.DYNAMIC_BROKER_CONFIG),)
    described = DescribedResource(ConfigResource(ResourceType.BROKER, "1"), entries=entries)
    shown = r"1\n  b=2\x1b[2J"
    assert configs.resource_lines(described, has_all=False)[1:] == [
        f"  a={shown} sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:a={shown}}}"
    ]


def test_the_title_of_every_broker() -> None:
    described = DescribedResource(ConfigResource(ResourceType.BROKER, ""))
    assert configs.resource_lines(described, has_all=True) == [
        "All configs for the default broker are:"
    ]
