"""Grants: names of resources, and operations on them."""

from __future__ import annotations

import pytest

from quorate.controller.authorization.authorizer import (
    ALL,
    CLUSTER,
    TOPICS,
    UNLIMITED,
    AllowedNames,
    Grant,
    NameSet,
    Operation,
    Permission,
    ResourceKind,
    Rights,
    topic_resource,
)

SOME = NameSet.of(["a", "bc"], ["x", "ab-"])


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("a", True), ("bc", True), ("b", False), ("ab", False), ("ab-", True), ("ab-1", True)],
)
def test_names_are_literal_or_begin_in_some_way(name: str, is_one: bool) -> None:  # noqa: FBT001
    assert SOME.contains(name) is is_one


def test_a_star_is_every_name() -> None:
    assert NameSet.of("*") == NameSet(are_all=True)
    assert NameSet.of(["*", "a"]).contains("b")
    assert NameSet.of().are_none
    assert not SOME.are_none
    # A prefix of no length is the beginning of all names; a star in one is a letter.
    assert NameSet.of(prefixes=[""]).contains("a")
    assert not NameSet.of(prefixes=["*"]).contains("a")


def test_a_denial_goes_before_what_is_allowed_beside_it_and_no_further() -> None:
    but_for_x1 = AllowedNames(NameSet(are_all=True), NameSet.of(["x1"]))
    assert not Grant(but_for_x1).covers("x1")
    assert Grant(but_for_x1).covers("x2")
    assert Grant(but_for_x1, AllowedNames(SOME)).covers("x1")


def test_a_grant_knows_whether_it_is_worth_asking() -> None:
    nothing = Grant(AllowedNames(NameSet.of()), AllowedNames(SOME, NameSet.of("*")))
    assert (ALL.is_all, ALL.is_none) == (True, False)
    assert (nothing.is_all, nothing.is_none) == (False, True)
    assert not nothing.covers("a")
    some = Grant(AllowedNames(NameSet.of("*"), SOME))
    assert (some.is_all, some.is_none) == (False, False)


def test_rights_are_granted_once_for_each_operation_on_each_kind() -> None:
    asked: list[tuple[Operation, ResourceKind]] = []

    def grant(operation: Operation, kind: ResourceKind) -> Grant:
        asked.append((operation, kind))
        return Grant(AllowedNames(SOME)) if kind is ResourceKind.TOPIC else Grant()

    rights = Rights("User:a", grant)
    assert rights.may(Operation.CREATE, topic_resource("a"))
    assert not rights.may(Operation.CREATE, topic_resource("b"))
    # Any topic suffices.
    assert rights.may(Operation.CREATE, TOPICS)
    assert not rights.may(Operation.CREATE, CLUSTER)
    assert asked == [
        (Operation.CREATE, ResourceKind.TOPIC),
        (Operation.CREATE, ResourceKind.CLUSTER),
    ]
    assert UNLIMITED.may(Operation.ALTER, CLUSTER)


def test_what_is_about_whichever_topic_is_not_judged_as_a_whole() -> None:
    assert Permission(Operation.ALTER).is_whole
    assert not Permission(Operation.CREATE, (CLUSTER, TOPICS)).is_whole


def test_resources_are_written_as_kafka_writes_them() -> None:
    assert (str(CLUSTER), str(TOPICS)) == ("Cluster:kafka-cluster", "Topic:*")
