"""Who may do what: a decision over identities that the settings list.

Operations and resources are Kafka's. The resources are there for rules that tell them apart; the
lists here do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EVERYBODY: Final = "User:*"
ANONYMOUS: Final = "User:ANONYMOUS"


class Operation(StrEnum):
    """What somebody wants to do, in the words of Kafka's ACLs."""

    CLUSTER_ACTION = "ClusterAction"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    ALTER_CONFIGS = "AlterConfigs"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


# What includes the right to look, as in Kafka.
_IMPLYING: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    Operation.DESCRIBE: (Operation.ALTER, Operation.DELETE),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


class ResourceKind(StrEnum):
    """What something is done to."""

    CLUSTER = "Cluster"
    TOPIC = "Topic"


@dataclass(frozen=True, slots=True)
class Resource:
    """One thing, or with the name `*` all of a kind."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


CLUSTER: Final = Resource(ResourceKind.CLUSTER, "kafka-cluster")
TOPICS: Final = Resource(ResourceKind.TOPIC, "*")


def topic_resource(name: str) -> Resource:
    """The topic of that name."""
    return Resource(ResourceKind.TOPIC, name)


@dataclass(frozen=True, slots=True)
class Permission:
    """What a kind of request takes of its caller: an operation on a resource.

    A request whose items may be judged one by one has them in the field `items`, and `of_item`
    tells which resource an item is about.
    """

    operation: Operation
    resource: Resource = CLUSTER
    items: str = ""
    of_item: Callable[[Any], Resource] | None = None


class Authorizer(Protocol):
    """Decides; without effects, so that it may be asked at any time."""

    def authorize(self, principal: str, operation: Operation, resource: Resource) -> bool: ...


@dataclass(frozen=True, slots=True)
class ListedIdentities:
    """Super users may do everything, others what a list has them do. An `Authorizer`."""

    super_users: frozenset[str]
    allowed: Mapping[Operation, frozenset[str]]

    def authorize(self, principal: str, operation: Operation, resource: Resource) -> bool:
        """Whether `principal`, such as `User:CN=alice`, may do this."""
        if principal in self.super_users:
            return True
        for sufficient in (operation, *_IMPLYING.get(operation, ())):
            listed = self.allowed.get(sufficient, frozenset())
            if principal in listed or EVERYBODY in listed:
                return True
        return False
