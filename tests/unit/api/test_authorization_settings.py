"""The settings of the authoriser, and what is refused."""

from __future__ import annotations

import pytest

from quorate.api.authorization_settings import (
    STANDARD_AUTHORIZER,
    allow_key,
    read_access,
    shared_list_warning,
)
from quorate.api.permissions import ALTER, OBSERVER, PEER
from quorate.controller.authorization.authorizer import Caller, Operation
from quorate.controller.authorization.config_authorizer import ConfigAuthorizer
from quorate.settings.properties import ConfigError, Settings


def test_without_an_authoriser_nobody_is_listed() -> None:
    assert read_access(Settings({"super.users": "User:CN=a"}, {})) is None


def test_identities_are_lists_with_semicolons() -> None:
    properties = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:CN=a,O=x; User:CN=b,O=x;",
        "authorizer.allow.quorum.action": "User:CN=q",
        "authorizer.allow.cluster.action": "User:CN=c",
        "authorizer.allow.describe": "User:*",
        "authorizer.forwarders": "User:CN=admin",
    }
    access = read_access(Settings(properties, {}))
    assert access is not None
    assert access.forwarders == {"User:CN=admin"}
    identities = access.authorizer
    assert isinstance(identities, ConfigAuthorizer)
    assert identities.super_users == {"User:CN=a,O=x", "User:CN=b,O=x"}
    assert {key: who for key, who in identities.allowed.items() if who} == {
        Operation.QUORUM_ACTION: {"User:CN=q"},
        Operation.CLUSTER_ACTION: {"User:CN=c"},
        Operation.DESCRIBE: {"User:*"},
    }


def test_each_operation_has_a_key() -> None:
    assert [allow_key(operation) for operation in Operation] == [
        "authorizer.allow.quorum.action",
        "authorizer.allow.cluster.action",
        "authorizer.allow.read",
        "authorizer.allow.create",
        "authorizer.allow.delete",
        "authorizer.allow.alter",
        "authorizer.allow.alter.configs",
        "authorizer.allow.describe",
        "authorizer.allow.describe.configs",
    ]


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, "it must be org.apache.kafka.metadata"),
        ({"super.users": "alice"}, "super.users has 'alice': write User:NAME"),
        ({"super.users": "User:"}, "write User:NAME"),
        ({"authorizer.allow.alter": "Group:x"}, "authorizer.allow.alter has 'Group:x'"),
        (
            {"authorizer.class.name": STANDARD_AUTHORIZER, "authorizer.allow.alter": "User:a"},
            "super.users is missing: list the controllers' identities",
        ),
        (
            {
                "authorizer.class.name": STANDARD_AUTHORIZER,
                "authorizer.allow.cluster.action": "User:a",
                "authorizer.allow.quorum.action": "",
            },
            "or in authorizer.allow.quorum.action, otherwise they refuse each other",
        ),
    ],
)
def test_identities_that_cannot_work_are_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_access(Settings(properties, {}))


CONTROLLER, BROKER = Caller("User:CN=controller"), Caller("User:CN=broker")


def test_brokers_are_no_voters_where_the_controllers_have_a_list() -> None:
    properties = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "authorizer.allow.quorum.action": "User:CN=controller",
        "authorizer.allow.cluster.action": "User:CN=broker",
    }
    settings = Settings(properties, {})
    access = read_access(settings)
    assert access is not None
    assert access.allows(CONTROLLER, PEER)
    assert access.allows(CONTROLLER, OBSERVER)
    assert access.allows(BROKER, OBSERVER)
    assert not access.allows(BROKER, PEER)
    assert shared_list_warning(settings) is None


def test_controllers_keep_their_quorum_with_settings_that_have_one_list() -> None:
    properties = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "authorizer.allow.cluster.action": "User:CN=controller;User:CN=broker",
    }
    settings = Settings(properties, {})
    access = read_access(settings)
    assert access is not None
    assert access.allows(CONTROLLER, PEER)
    # As before: a broker's identity is as good as a controller's.
    assert access.allows(BROKER, PEER)
    warning = shared_list_warning(settings)
    assert warning is not None
    assert warning.startswith("authorizer.allow.quorum.action is missing: every identity in ")


@pytest.mark.parametrize("by_environment", [False, True])
def test_an_empty_list_of_controllers_is_a_list(*, by_environment: bool) -> None:
    # The controllers are super users here, and no broker is to vote.
    properties = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:CN=controller",
        "authorizer.allow.cluster.action": "User:CN=broker",
    }
    environment = {}
    if by_environment:
        environment["QUORATE_AUTHORIZER_ALLOW_QUORUM_ACTION"] = ""
    else:
        properties["authorizer.allow.quorum.action"] = ""
    settings = Settings(properties, environment)
    access = read_access(settings)
    assert access is not None
    assert access.allows(CONTROLLER, PEER)
    assert not access.allows(BROKER, PEER)
    assert shared_list_warning(settings) is None


def test_one_list_needs_no_warning_where_nobody_is_judged_or_listed() -> None:
    one_list = {"authorizer.allow.cluster.action": "User:CN=controller"}
    assert shared_list_warning(Settings(one_list, {})) is None
    super_users = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:CN=c"}
    assert shared_list_warning(Settings(super_users, {})) is None


def test_a_process_without_peers_needs_no_list_of_them() -> None:
    properties = {"authorizer.class.name": STANDARD_AUTHORIZER, "authorizer.allow.alter": "User:a"}
    access = read_access(Settings(properties, {}), has_peers=False)
    assert access is not None
    assert access.allows(Caller("User:a"), ALTER)
