from __future__ import annotations

import pytest

from quorate.controller.client_quotas.messages import EntityPart
from quorate.controller.client_quotas.quota_entities import (
    entity_of,
    key_of,
    limits_of,
    value_problem,
)
from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode
from tests.unit.controller.client_quotas.conftest import ADDRESS, ALL_USERS, BOTH, CLIENT, USER

OF_CLIENTS = {
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
}


def test_an_entity_is_a_set_in_which_the_default_is_not_an_empty_name() -> None:
    assert key_of(BOTH) == key_of(tuple(reversed(BOTH)))
    assert entity_of(key_of(tuple(reversed(BOTH)))) == BOTH
    assert key_of(ALL_USERS) != key_of((EntityPart("user", ""),))
    assert entity_of(key_of(ALL_USERS)) == ALL_USERS
    assert key_of(ALL_USERS) < key_of(USER)


@pytest.mark.parametrize("entity", [USER, ALL_USERS, CLIENT, BOTH, (EntityPart("client-id"),)])
def test_users_and_clients_have_the_same_quotas(entity: tuple[EntityPart, ...]) -> None:
    assert set(limits_of(entity)) == OF_CLIENTS


@pytest.mark.parametrize("name", ["10.0.0.1", "fd00::1", None])
def test_addresses_have_one_of_their_own(name: str | None) -> None:
    assert set(limits_of((EntityPart("ip", name),))) == {"connection_creation_rate"}


@pytest.mark.parametrize(
    ("entity", "words"),
    [
        ((), "has no part; name a user"),
        ((EntityPart("group", "a"),), "'group' is none of user, client-id, ip"),
        ((*USER, EntityPart("user")), "two parts of type user; give one"),
        ((EntityPart("user", ""),), "name of the user is empty; leave it out"),
        ((*USER, *ADDRESS), "An ip is an entity by itself; leave out"),
        ((*ADDRESS, *CLIENT), "An ip is an entity by itself; leave out"),
        ((EntityPart("ip", "broker.example"),), "'broker.example' is no address; give one"),
        ((EntityPart("ip", "10.0.0.256"),), "'10.0.0.256' is no address; give one"),
    ],
)
def test_what_is_no_entity_is_refused_with_the_remedy(
    entity: tuple[EntityPart, ...], words: str
) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        limits_of(entity)
    assert refused.value.error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer_byte_rate", 1.0),
        ("producer_byte_rate", 2.0**63),
        ("request_percentage", 0.5),
        ("controller_mutation_rate", 1e300),
    ],
)
def test_values_of_users_are_as_large_as_kafkas_types(key: str, value: float) -> None:
    assert value_problem(limits_of(USER), key, value) is None


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("producer_byte_rate", 0.0, "is 0; give a number above 0"),
        ("producer_byte_rate", -1.0, "is -1; give a number above 0"),
        ("request_percentage", float("nan"), "is nan; give a finite number"),
        ("request_percentage", float("inf"), "is inf; give a finite number"),
        ("producer_byte_rate", 1.5, "is 1.5; give a whole number"),
        ("consumer_byte_rate", 1e19, "give at most 9223372036854775808"),
        ("connection_creation_rate", 1.0, "There is no quota 'connection_creation_rate' for this"),
    ],
)
def test_values_that_are_none_are_named(key: str, value: float, words: str) -> None:
    assert words in (value_problem(limits_of(USER), key, value) or "")


@pytest.mark.parametrize(("value", "is_fine"), [(2.0**31 - 1, True), (2.0**31, False)])
def test_an_address_makes_connections_at_a_rate_of_32_bits(value: float, *, is_fine: bool) -> None:
    problem = value_problem(limits_of(ADDRESS), "connection_creation_rate", value)
    assert (problem is None) is is_fine
