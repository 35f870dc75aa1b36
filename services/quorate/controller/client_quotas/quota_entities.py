"""Quota entities and the quotas that each type of entity may have.

The rules are Kafka's. An entity is a user, a client id, both, or an address; each of them by name,
or as the default of its type. Addresses are literal. Kafka also resolves host names, on each broker
separately; a decision here makes no network calls.
"""

from __future__ import annotations

from ipaddress import ip_address
from math import isfinite
from typing import TYPE_CHECKING, Final

from quorate.controller.client_quotas.messages import EntityPart
from quorate.controller.errors import RefusedError
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.controller.client_quotas.image import EntityKey

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)
# The largest value of each kind is that of Kafka's type, as a double. Only percentages and rates
# may be fractional.
_LONG_MAX: Final = float(2**63 - 1)
_INT_MAX: Final = float(2**31 - 1)
_WHOLE: Final = 1e-6
# By key, the largest value of an integer quota; None for any number.
_Limits = dict[str, float | None]
_OF_CLIENTS: Final[_Limits] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Final[_Limits] = {"connection_creation_rate": _INT_MAX}


def key_of(entity: Iterable[EntityPart]) -> EntityKey:
    """The key of an entity in the image."""
    return tuple(
        sorted(
            (part.entity_type, part.entity_name is not None, part.entity_name or "")
            for part in entity
        )
    )


def entity_of(key: EntityKey) -> tuple[EntityPart, ...]:
    """The entity of a key."""
    return tuple(EntityPart(type_, name if has_name else None) for type_, has_name, name in key)


def limits_of(entity: tuple[EntityPart, ...]) -> Mapping[str, float | None]:
    """The quotas that an entity may have, with the largest value of integer ones.

    Raises RefusedError for an invalid entity.
    """
    problem = _entity_problem(entity)
    if problem is not None:
        raise RefusedError(ErrorCode.INVALID_REQUEST, problem)
    return _OF_ADDRESSES if entity[0].entity_type == IP else _OF_CLIENTS


def _entity_problem(entity: tuple[EntityPart, ...]) -> str | None:
    if not entity:
        return "The entity has no part; name a user, a client-id, both, or an ip."
    types = [part.entity_type for part in entity]
    for part in entity:
        if part.entity_type not in TYPES:
            return f"The entity type {part.entity_type!r} is none of {', '.join(TYPES)}."
        if types.count(part.entity_type) > 1:
            return f"The entity has two parts of type {part.entity_type}; give one."
        if part.entity_name == "":
            return f"The name of the {part.entity_type} is empty; leave it out for the default."
    if IP in types and len(types) > 1:
        return "An ip is an entity by itself; leave out the user and the client-id."
    return _address_problem(entity[0].entity_name) if IP in types else None


def _address_problem(name: str | None) -> str | None:
    if name is not None:
        try:
            ip_address(name)
        except ValueError:
            return f"The ip {name!r} is no address; give one such as 10.0.0.1 or fd00::1."
    return None


def value_problem(limits: Mapping[str, float | None], key: str, value: float) -> str | None:
    """The problem with a quota of an entity with these limits, or None."""
    if key not in limits:
        return f"There is no quota {key!r} for this entity; it may have {', '.join(limits)}."
    if not isfinite(value):
        return f"The quota {key} is {value:g}; give a finite number."
    if value <= 0:
        return f"The quota {key} is {value:g}; give a number above 0."
    largest = limits[key]
    if largest is not None and value > largest:
        return f"The quota {key} is {value:g}; give at most {int(largest)}."
    if largest is not None and value % 1 > _WHOLE:
        return f"The quota {key} is {value}; give a whole number."
    return None
