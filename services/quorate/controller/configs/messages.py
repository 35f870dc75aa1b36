"""Requests and replies about configs."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

from quorate.controller.authorization.authorizer import (
    CLUSTER,
    TOPICS,
    Operation,
    Permission,
    Resource,
    topic_resource,
)
from quorate.controller.request_types import ReadRequestOf, WriteReply, WriteRequestOf
from quorate.records.errors import ErrorCode
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.records.ids import Offset


class ResourceType(IntEnum):
    """Types of config resources; the value is the number in ConfigRecord."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@value_type
class ConfigResource:
    """A topic by name, a broker by its decimal id, or, with an empty name, every broker."""

    type: ResourceType
    name: str


def config_owner(resource: ConfigResource) -> Resource:
    """The resource on which access to its configs is authorized; for brokers the cluster."""
    return topic_resource(resource.name) if resource.type is ResourceType.TOPIC else CLUSTER


class AlterOperation(IntEnum):
    """Kinds of change of one key (KIP-339); the last two are for values that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@value_type
class ConfigChange:
    name: str
    operation: AlterOperation
    value: str | None = None


@value_type
class ConfigAlteration:
    """All changes of one resource; they take effect together or not at all."""

    resource: ConfigResource
    changes: tuple[ConfigChange, ...]


@value_type
class IncrementalAlterConfigs(WriteRequestOf["IncrementalAlterConfigsReply"]):
    alterations: tuple[ConfigAlteration, ...]
    validate_only: bool = False
    permission: ClassVar = Permission(
        Operation.ALTER_CONFIGS,
        (CLUSTER, TOPICS),
        items="alterations",
        results="resources",
        of_item=lambda alteration: config_owner(alteration.resource),
    )


@value_type
class DescribeConfigs(ReadRequestOf["DescribeConfigsReply"]):
    """The configs set on these resources, and with `include_defaults` the defaults."""

    resources: tuple[ConfigResource, ...]
    include_defaults: bool = False
    permission: ClassVar = Permission(
        Operation.DESCRIBE_CONFIGS,
        (CLUSTER, TOPICS),
        items="resources",
        results="resources",
        of_item=config_owner,
    )


@value_type
class AlteredResource:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@value_type
class IncrementalAlterConfigsReply(WriteReply):
    resources: tuple[AlteredResource, ...]


class ConfigSource(IntEnum):
    """Sources of a value, with the numbers of Kafka's DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    DEFAULT_CONFIG = 5


@value_type
class ConfigEntry:
    """One key; the value of a sensitive one is withheld (None)."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False


@value_type
class DescribedResource:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    entries: tuple[ConfigEntry, ...] = ()


@value_type
class DescribeConfigsReply:
    offset: Offset
    resources: tuple[DescribedResource, ...]


ITEMS_MAX: Final = {("ConfigAlteration", "changes"): 100}
