"""Principals, operations, resources and the Authorizer interface, as in Kafka's ACLs.

Terms and rules are Kafka's. An authorizer is a function of the image: a grant depends only on the
metadata and on the caller. A grant covers one operation on one kind of resource, so that
authorizing a thousand items of one request takes a thousand look-ups of a name.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from quorate.controller.image import View

ANY_PRINCIPAL: Final = "User:*"
ANONYMOUS: Final = "User:ANONYMOUS"
WILDCARD: Final = "*"


@value_type
class Caller:
    """The sender of a request: a principal such as `User:alice`, and its address.

    Fair queueing uses `client` (h2/peer_name.py); no right depends on it.
    """

    principal: str
    client: str = field(default="", kw_only=True)


class Operation(StrEnum):
    """The operations of Kafka's ACLs that a caller may have, and QuorumAction of our own.

    Kafka has ClusterAction for brokers and controllers alike.
    """

    QUORUM_ACTION = "QuorumAction"
    CLUSTER_ACTION = "ClusterAction"
    READ = "Read"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    ALTER_CONFIGS = "AlterConfigs"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


class ResourceKind(StrEnum):
    """Kinds of resources."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"


@value_type
class Resource:
    """One resource, or with the name `*` any resource of a kind."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


CLUSTER: Final = Resource(ResourceKind.CLUSTER, "kafka-cluster")
TOPICS: Final = Resource(ResourceKind.TOPIC, WILDCARD)
# Kafka's name for the log of the metadata.
LOG: Final = Resource(ResourceKind.TOPIC, "__cluster_metadata")


def topic_resource(name: str) -> Resource:
    """The topic of that name."""
    return Resource(ResourceKind.TOPIC, name)


@value_type
class Permission:
    """The permission that a kind of request requires: an operation on one of some resources.

    The whole request is rejected if the caller has it on none of `on`. A request whose items are
    authorized individually has them in the field `items`, and its reply has their results, in the
    same order, in the field `results`; `of_item` returns the resource of an item. The operation on
    `for_all` authorizes every item.
    """

    operation: Operation
    on: tuple[Resource, ...] = (CLUSTER,)
    items: str = ""
    results: str = ""
    of_item: Callable[[Any], Resource] | None = None
    for_all: Resource | None = None

    @property
    def is_whole(self) -> bool:
        """True if the request is authorized once, not item by item."""
        return WILDCARD not in [resource.name for resource in self.on]


# --- grants ---------------------------------------------------------------------------------------


@value_type
class NameSet:
    """Names of resources: all, or some literal names and some prefixes."""

    are_all: bool = False
    literal: frozenset[str] = frozenset()
    # By length: there are few different lengths, however many prefixes there are.
    prefixes: tuple[tuple[int, frozenset[str]], ...] = ()

    @classmethod
    def of(cls, literal: Iterable[str] = (), prefixes: Iterable[str] = ()) -> NameSet:
        """`*` among the literal names stands for all names."""
        names, beginnings = frozenset(literal), frozenset(prefixes)
        lengths = sorted({len(each) for each in beginnings})
        by_length = [(n, frozenset(each for each in beginnings if len(each) == n)) for n in lengths]
        return cls(WILDCARD in names, names - {WILDCARD}, tuple(by_length))

    @property
    def are_none(self) -> bool:
        return not (self.are_all or self.literal or self.prefixes)

    def contains(self, name: str) -> bool:
        """True if the name is one of them."""
        return (
            self.are_all
            or name in self.literal
            or any(name[:length] in beginnings for length, beginnings in self.prefixes)
        )


NO_NAMES: Final = NameSet()


@value_type
class AllowedNames:
    """Some names with exceptions."""

    name_set: NameSet
    but: NameSet = NO_NAMES

    @property
    def are_all(self) -> bool:
        return self.name_set.are_all and self.but.are_none

    @property
    def are_none(self) -> bool:
        """True if it allows no name; exceptions are only considered if they cover all names."""
        return self.name_set.are_none or self.but.are_all

    def contains(self, name: str) -> bool:
        """True if the name is allowed and not an exception."""
        return self.name_set.contains(name) and not self.but.contains(name)


class Grant:
    """The resources of one kind on which a caller may do one operation: the union of allowances."""

    __slots__ = ("_allowances", "is_all", "is_none")

    def __init__(self, *allowances: AllowedNames) -> None:
        self._allowances = tuple(each for each in allowances if not each.are_none)
        self.is_all = any(each.are_all for each in allowances)
        # Something may be allowed, though perhaps no resource that exists.
        self.is_none = not self._allowances

    def covers(self, name: str) -> bool:
        """True if the operation is granted on the resource of this name."""
        return self.is_all or any(each.contains(name) for each in self._allowances)


ALL: Final = Grant(AllowedNames(NameSet(are_all=True)))


class Rights:
    """The rights of one caller, by the metadata at one point in time."""

    def __init__(self, principal: str, grant: Callable[[Operation, ResourceKind], Grant]) -> None:
        """`grant` is called once for each operation on each kind."""
        self.principal = principal
        self._grant = grant
        self._granted: dict[tuple[Operation, ResourceKind], Grant] = {}

    def grant(self, operation: Operation, kind: ResourceKind) -> Grant:
        """The resources of this kind on which the operation is granted."""
        granted = self._granted.get((operation, kind))
        if granted is None:
            granted = self._granted[operation, kind] = self._grant(operation, kind)
        return granted

    def may(self, operation: Operation, resource: Resource) -> bool:
        """True if the operation is granted; for the name `*`, on any resource of the kind."""
        grant = self.grant(operation, resource.kind)
        if resource.name == WILDCARD:
            return not grant.is_none
        return grant.covers(resource.name)


UNLIMITED: Final = Rights("", lambda _operation, _kind: ALL)


class Authorizer(Protocol):
    """Decides without side effects, so that it may be called at any time."""

    def rights(self, view: View | None, caller: Caller) -> Rights:
        """The rights of the caller under this metadata; None before any metadata is loaded."""
        ...
