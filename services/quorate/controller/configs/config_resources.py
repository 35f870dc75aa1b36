"""Config resources: validation, keys, and precedence of values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.controller.configs.messages import (
    ConfigResource,
    ResourceType,
)
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.controller.configs.image import ConfigKey
    from quorate.controller.image import View

ALL_BROKERS: Final = (int(ResourceType.BROKER), "")
UNCLEAN: Final = "unclean.leader.election.enable"
_MIN_INSYNC: Final = "min.insync.replicas"
# Invalid names are shown truncated to this length, enough to recognise them.
_SHOWN_MAX: Final = 32
_BROKER_ID = re.compile(r"0|[1-9][0-9]{0,9}")


def resource_key(resource: ConfigResource) -> ConfigKey:
    """The key of a resource in the image."""
    return (int(resource.type), resource.name)


def resource_problem(image: View, resource: ConfigResource) -> tuple[ErrorCode, str] | None:
    """The reason why a resource cannot have configs here, or None if it can."""
    if resource.type is ResourceType.TOPIC:
        if resource.name in image.topics.ids:
            return None
        message = f"There is no topic {resource.name!r}; create it first."
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message
    if resource.type is not ResourceType.BROKER:
        message = (
            f"Configurations of {resource.type.name} are not kept here; name a topic or a broker."
        )
        return ErrorCode.INVALID_REQUEST, message
    if not resource.name:
        return None
    if not _BROKER_ID.fullmatch(resource.name):
        shown = resource.name[:_SHOWN_MAX]
        message = f"The broker {shown!r} is not an id; give its number, or '' for all brokers."
        return ErrorCode.INVALID_REQUEST, message
    if int(resource.name) not in image.brokers.by_id:
        message = f"No broker is registered with the id {resource.name}; register it first."
        return ErrorCode.BROKER_ID_NOT_REGISTERED, message
    return None


def allows_unclean_election(image: View, topic: str) -> bool:
    """True if a replica out of sync may lead a partition of the topic if no other can."""
    return _topic_config(image, topic, UNCLEAN, "false").lower() == "true"


def min_insync_replicas(image: View, topic: str, replicas: int) -> int:
    """The number of a partition's `replicas` that have to be in sync for a write."""
    try:
        minimum = int(_topic_config(image, topic, _MIN_INSYNC, "1"))
    except ValueError:
        # Broker values are not validated here. With one that is not a number no write succeeds.
        minimum = replicas
    return min(minimum, replicas)


def _topic_config(image: View, topic: str, name: str, default: str) -> str:
    """The value that applies to a topic: its own, or that of all brokers."""
    own = image.configs.of((int(ResourceType.TOPIC), topic)).get(name)
    return image.configs.of(ALL_BROKERS).get(name, default) if own is None else own
