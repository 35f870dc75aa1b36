"""Quotas on the command line, and as they are shown."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import pytest

from quorate.cli import quotas
from quorate.cli.output import CommandError
from quorate.controller.client_quotas.messages import (
    DescribedEntity,
    EntityPart,
    MatchType,
    QuotaComponent,
    QuotaOp,
    QuotaValue,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT, DEFAULT, SPECIFIED = MatchType


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    quotas.register(parser.add_subparsers())
    return parser.parse_args(["quotas", *arguments])


@pytest.mark.parametrize(
    ("flags", "entity"),
    [
        (("--user", "alice"), (EntityPart("user", "alice"),)),
        (("--user-defaults",), (EntityPart("user"),)),
        (
            ("--client-defaults", "--user", "alice"),
            (EntityPart("user", "alice"), EntityPart("client-id")),
        ),
        (("--ip", "10.0.0.1"), (EntityPart("ip", "10.0.0.1"),)),
    ],
)
def test_flags_name_an_entity(flags: Sequence[str], entity: tuple[EntityPart, ...]) -> None:
    assert quotas.parse_entity(parsed("alter", *flags)) == entity


def test_a_change_needs_an_entity() -> None:
    with pytest.raises(CommandError, match="name an entity with --user, --client or --ip"):
        quotas.parse_entity(parsed("alter", "--add-config", "producer_byte_rate=1"))


@pytest.mark.parametrize(
    ("flags", "components"),
    [
        ((), ()),
        (("--user", "alice"), (QuotaComponent("user", EXACT, "alice"),)),
        (("--user",), (QuotaComponent("user", SPECIFIED),)),
        (
            ("--client-defaults", "--user"),
            (QuotaComponent("user", SPECIFIED), QuotaComponent("client-id", DEFAULT)),
        ),
    ],
)
def test_flags_are_a_filter(flags: Sequence[str], components: tuple[Any, ...]) -> None:
    assert quotas.parse_components(parsed("describe", *flags)) == components


@pytest.mark.parametrize("flags", [("--user", "a", "--user-defaults"), ("--user",)])
def test_one_type_of_an_entity_is_named_once_and_by_name(flags: Sequence[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("alter", *flags)


def test_changes_are_split_at_commas() -> None:
    ops = quotas.parse_ops(["a=1,b=2.5", "c=1e3"], ["d, e", "f"])
    assert ops == (
        QuotaOp("a", 1.0),
        QuotaOp("b", 2.5),
        QuotaOp("c", 1000.0),
        QuotaOp("d", remove=True),
        QuotaOp("e", remove=True),
        QuotaOp("f", remove=True),
    )


@pytest.mark.parametrize(
    ("add", "words"),
    [
        ([], "give --add-config or"),
        (["a"], "'a' is no KEY=VALUE"),
        (["a=x"], "'x' of a is no"),
        (["a=1_0"], "'1_0' of a is no"),
        (["a=\u0661"], "of a is no"),
        (["a=nan"], "of a is no"),
    ],
)
def test_a_change_that_is_none_is_refused(add: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        quotas.parse_ops(add, [])


def test_a_key_to_delete_needs_a_name() -> None:
    with pytest.raises(CommandError, match="--delete-config: '' has an empty key"):
        quotas.parse_ops([], [""])


def test_quotas_are_shown_as_kafka_shows_them() -> None:
    values = (QuotaValue("consumer_byte_rate", 1.5), QuotaValue("producer_byte_rate", 1024.0))
    named = (EntityPart("client-id", "c"), EntityPart("user", "alice"))
    assert quotas.entity_line(DescribedEntity(named, values)) == (
        "Quota configs for user-principal 'alice', client-id 'c' are"
        " consumer_byte_rate=1.5, producer_byte_rate=1024.0"
    )
    assert quotas.entity_title((EntityPart("ip"),)) == "the default ip"
    assert quotas.entity_title((EntityPart("user"), EntityPart("client-id"))) == (
        "the default user-principal, the default client-id"
    )
