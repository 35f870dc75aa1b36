"""Grants that the settings give to principals."""

from __future__ import annotations

import pytest

from quorate.controller.authorization.authorizer import (
    CLUSTER,
    TOPICS,
    Caller,
    Operation,
    Resource,
    ResourceKind,
    topic_resource,
)
from quorate.controller.authorization.config_authorizer import (
    CALLERS_KEPT_MAX,
    ConfigAuthorizer,
    Rule,
)

ALICE = "User:CN=alice"
BOB = "User:CN=bob"


def listed(*rules: Rule, **lists: str) -> ConfigAuthorizer:
    allowed = {Operation[name.upper()]: frozenset({who}) for name, who in lists.items()}
    return ConfigAuthorizer(frozenset({BOB}), allowed, rules)


def may(identities: ConfigAuthorizer, who: str, operation: Operation, resource: Resource) -> bool:
    return identities.rights(None, Caller(who)).may(operation, resource)


def test_a_super_user_may_do_everything() -> None:
    for operation in Operation:
        for resource in (CLUSTER, TOPICS, topic_resource("a")):
            assert may(listed(), BOB, operation, resource)
            assert not may(listed(), ALICE, operation, resource)


def test_a_list_allows_its_operation_on_every_resource() -> None:
    identities = listed(create=ALICE)
    assert may(identities, ALICE, Operation.CREATE, CLUSTER)
    assert may(identities, ALICE, Operation.CREATE, topic_resource("a"))
    assert not may(identities, ALICE, Operation.DELETE, TOPICS)
    # Names are compared as a whole, letters as they are written.
    assert not may(identities, "User:CN=Alice", Operation.CREATE, CLUSTER)
    assert not may(identities, ALICE + "2", Operation.CREATE, CLUSTER)


@pytest.mark.parametrize(
    ("given", "implied"),
    [
        (Operation.ALTER, Operation.DESCRIBE),
        (Operation.DELETE, Operation.DESCRIBE),
        (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
    ],
)
def test_who_may_change_may_look(given: Operation, implied: Operation) -> None:
    orders = topic_resource("orders")
    rule = Rule(frozenset({ALICE}), frozenset({given}), orders)
    for identities in (listed(**{given.name: ALICE}), listed(rule)):
        assert may(identities, ALICE, implied, orders)
        assert may(identities, ALICE, given, orders)
    for identities in (listed(**{implied.name: ALICE}),):
        assert not may(identities, ALICE, given, orders)
    assert not may(listed(rule), ALICE, implied, topic_resource("other"))


def test_a_star_is_everybody_also_the_anonymous() -> None:
    identities = listed(describe="User:*")
    assert may(identities, "User:ANONYMOUS", Operation.DESCRIBE, CLUSTER)
    assert not may(identities, "User:ANONYMOUS", Operation.ALTER, CLUSTER)


def test_a_rule_is_about_one_resource_or_those_that_begin_like_it() -> None:
    both = frozenset({Operation.CREATE, Operation.DELETE})
    identities = listed(
        Rule(frozenset({ALICE}), both, topic_resource("orders-"), is_prefix=True),
        Rule(frozenset({ALICE, "User:c"}), both, topic_resource("audit")),
        Rule(frozenset({"User:*"}), frozenset({Operation.CREATE}), TOPICS),
    )
    assert may(identities, ALICE, Operation.DELETE, topic_resource("orders-1"))
    assert may(identities, ALICE, Operation.DELETE, topic_resource("audit"))
    assert not may(identities, ALICE, Operation.DELETE, topic_resource("audit2"))
    assert not may(identities, ALICE, Operation.DELETE, CLUSTER)
    assert may(identities, "User:d", Operation.CREATE, topic_resource("any"))
    assert not may(identities, "User:d", Operation.CREATE, CLUSTER)
    cluster = listed(Rule(frozenset({ALICE}), both, CLUSTER))
    assert may(cluster, ALICE, Operation.CREATE, CLUSTER)
    assert not may(cluster, ALICE, Operation.CREATE, TOPICS)
    assert cluster.rights(None, Caller(ALICE)).grant(Operation.CREATE, ResourceKind.TOPIC).is_none


def test_the_rights_of_few_callers_are_kept() -> None:
    identities = listed(create=ALICE)
    rights = identities.rights(None, Caller(ALICE))
    assert identities.rights(None, Caller(ALICE)) is rights
    for number in range(CALLERS_KEPT_MAX):
        identities.rights(None, Caller(f"User:{number}"))
    assert len(identities._rights) <= CALLERS_KEPT_MAX
