"""What the controller answers: one reply for a request, one error code and message per item.

A message is empty exactly where the code is NONE; otherwise it names the field and the remedy. The
`offset` of a read is the end of the committed log that the answer reflects: it includes everything
below.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.controller.requests import ConfigResource, Cursor, Listener
    from quorate.records.ids import Offset, TopicId


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """With `validate_only` there is no id; on an error the counts are -1."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None
    partitions: int = -1
    replication_factor: int = -1


@dataclass(frozen=True, slots=True)
class CreateTopicsReply:
    topics: tuple[CreatedTopic, ...]


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsReply:
    topics: tuple[DeletedTopic, ...]


@dataclass(frozen=True, slots=True)
class ListedTopic:
    name: str
    topic_id: TopicId
    partitions: int


@dataclass(frozen=True, slots=True)
class ListTopicsReply:
    offset: Offset
    topics: tuple[ListedTopic, ...]
    next_cursor: Cursor | None = None


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """One partition; the leader is -1 when none can lead."""

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """`configs` are those set on the topic itself, in order of their names."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None
    partitions: tuple[DescribedPartition, ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeTopicsReply:
    """The last topic may go on where the cursor points."""

    offset: Offset
    topics: tuple[DescribedTopic, ...]
    next_cursor: Cursor | None = None


@dataclass(frozen=True, slots=True)
class AlteredResource:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsReply:
    resources: tuple[AlteredResource, ...]


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of Kafka's DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    DEFAULT_CONFIG = 5


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key; the value of a sensitive one is withheld (None)."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class DescribedResource:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    entries: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeConfigsReply:
    offset: Offset
    resources: tuple[DescribedResource, ...]


@dataclass(frozen=True, slots=True)
class RegisterBrokerReply:
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatReply:
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class ListedBroker:
    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    listeners: tuple[Listener, ...]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ListBrokersReply:
    offset: Offset
    brokers: tuple[ListedBroker, ...]


@dataclass(frozen=True, slots=True)
class UnregisterBrokerReply:
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


WriteReply: TypeAlias = (
    CreateTopicsReply
    | DeleteTopicsReply
    | IncrementalAlterConfigsReply
    | RegisterBrokerReply
    | BrokerHeartbeatReply
    | UnregisterBrokerReply
)
ReadReply: TypeAlias = (
    ListTopicsReply | DescribeTopicsReply | DescribeConfigsReply | ListBrokersReply
)
