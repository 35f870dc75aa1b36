"""What the controller answers: one reply for a request, one error code and message per item.

A message is empty exactly where the code is NONE; otherwise it names the field and the remedy. The
`offset` of a read is the end of the committed log that the answer reflects: it includes everything
below.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from quorate.records.errors import ErrorCode
from quorate.records.value import value

if TYPE_CHECKING:
    from quorate.controller.requests import ConfigResource, Cursor, Listener
    from quorate.records.ids import Offset, TopicId


@value
class CreatedTopic:
    """With `validate_only` there is no id; on an error the counts are -1."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None
    partitions: int = -1
    replication_factor: int = -1


@value
class CreateTopicsReply:
    topics: tuple[CreatedTopic, ...]


@value
class DeletedTopic:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None


@value
class DeleteTopicsReply:
    topics: tuple[DeletedTopic, ...]


@value
class ListedTopic:
    name: str
    topic_id: TopicId
    partitions: int


@value
class ListTopicsReply:
    offset: Offset
    topics: tuple[ListedTopic, ...]
    next_cursor: Cursor | None = None


@value
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


@value
class DescribedTopic:
    """`configs` are those set on the topic itself, in order of their names."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    topic_id: TopicId | None = None
    partitions: tuple[DescribedPartition, ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


@value
class DescribeTopicsReply:
    """The last topic may go on where the cursor points."""

    offset: Offset
    topics: tuple[DescribedTopic, ...]
    next_cursor: Cursor | None = None


@value
class AlteredResource:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@value
class IncrementalAlterConfigsReply:
    resources: tuple[AlteredResource, ...]


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are those of Kafka's DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    DEFAULT_CONFIG = 5


@value
class ConfigEntry:
    """One key; the value of a sensitive one is withheld (None)."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False


@value
class DescribedResource:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    entries: tuple[ConfigEntry, ...] = ()


@value
class DescribeConfigsReply:
    offset: Offset
    resources: tuple[DescribedResource, ...]


@value
class RegisterBrokerReply:
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    broker_epoch: int = -1


@value
class BrokerHeartbeatReply:
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@value
class ListedBroker:
    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    listeners: tuple[Listener, ...]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...] = ()


@value
class ListBrokersReply:
    offset: Offset
    brokers: tuple[ListedBroker, ...]


@value
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
