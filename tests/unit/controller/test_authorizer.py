"""Who may do what by lists of identities."""

from __future__ import annotations

import pytest

from quorate.controller.authorizer import CLUSTER, TOPICS, ListedIdentities, Operation

ALICE = "User:CN=alice"
BOB = "User:CN=bob"


def listed(**lists: str) -> ListedIdentities:
    allowed = {Operation[name.upper()]: frozenset({who}) for name, who in lists.items()}
    return ListedIdentities(frozenset({BOB}), allowed)


def test_a_super_user_may_do_everything() -> None:
    for operation in Operation:
        assert listed().authorize(BOB, operation, CLUSTER)
        assert not listed().authorize(ALICE, operation, CLUSTER)


def test_a_list_allows_its_operation_on_every_resource() -> None:
    identities = listed(create=ALICE)
    assert identities.authorize(ALICE, Operation.CREATE, CLUSTER)
    assert identities.authorize(ALICE, Operation.CREATE, TOPICS)
    assert not identities.authorize(ALICE, Operation.DELETE, TOPICS)
    # Names are compared as a whole, letters as they are written.
    assert not identities.authorize("User:CN=Alice", Operation.CREATE, CLUSTER)
    assert not identities.authorize(ALICE + "2", Operation.CREATE, CLUSTER)


@pytest.mark.parametrize(
    ("given", "implied"),
    [("alter", "describe"), ("delete", "describe"), ("alter_configs", "describe_configs")],
)
def test_who_may_change_may_look(given: str, implied: str) -> None:
    identities = listed(**{given: ALICE})
    assert identities.authorize(ALICE, Operation[implied.upper()], CLUSTER)
    assert not listed(**{implied: ALICE}).authorize(ALICE, Operation[given.upper()], CLUSTER)


def test_a_star_is_everybody_also_the_anonymous() -> None:
    identities = listed(describe="User:*")
    assert identities.authorize("User:ANONYMOUS", Operation.DESCRIBE, CLUSTER)
    assert not identities.authorize("User:ANONYMOUS", Operation.ALTER, CLUSTER)


def test_resources_are_written_as_kafka_writes_them() -> None:
    assert (str(CLUSTER), str(TOPICS)) == ("Cluster:kafka-cluster", "Topic:*")
