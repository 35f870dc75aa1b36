"""The settings of the authoriser, and what is refused."""

from __future__ import annotations

import pytest

from quorate.api.access import STANDARD_AUTHORIZER, allow_key, read_access
from quorate.api.rights import ALTER
from quorate.controller.authorizer import Caller, Operation
from quorate.controller.listed_identities import ListedIdentities
from quorate.settings.properties import ConfigError, Settings


def test_without_an_authoriser_nobody_is_listed() -> None:
    assert read_access(Settings({"super.users": "User:CN=a"}, {})) is None


def test_identities_are_lists_with_semicolons() -> None:
    properties = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:CN=a,O=x; User:CN=b,O=x;",
        "authorizer.allow.cluster.action": "User:CN=c",
        "authorizer.allow.describe": "User:*",
        "authorizer.forwarders": "User:CN=admin",
    }
    access = read_access(Settings(properties, {}))
    assert access is not None
    assert access.forwarders == {"User:CN=admin"}
    identities = access.authorizer
    assert isinstance(identities, ListedIdentities)
    assert identities.super_users == {"User:CN=a,O=x", "User:CN=b,O=x"}
    assert {key: who for key, who in identities.allowed.items() if who} == {
        Operation.CLUSTER_ACTION: {"User:CN=c"},
        Operation.DESCRIBE: {"User:*"},
    }


def test_each_operation_has_a_key() -> None:
    assert [allow_key(operation) for operation in Operation] == [
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
    ],
)
def test_identities_that_cannot_work_are_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_access(Settings(properties, {}))


def test_a_process_without_peers_needs_no_list_of_them() -> None:
    properties = {"authorizer.class.name": STANDARD_AUTHORIZER, "authorizer.allow.alter": "User:a"}
    access = read_access(Settings(properties, {}), has_peers=False)
    assert access is not None
    assert access.allows(Caller("User:a"), ALTER)
