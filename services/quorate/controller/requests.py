"""What the controller can be asked: frozen values, free of any transport.

Names follow Kafka's Admin and broker requests in snake_case. Lists carry many items because an
answer reports errors per item (rule 20).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.records.value import named_value, value

if TYPE_CHECKING:
    from quorate.records.ids import ClusterId, Offset

USE_DEFAULT: Final = -1


@value
class Caller:
    """Who asks, for the authoriser: a principal such as `User:alice`, and the address it uses."""

    principal: str
    host: str


class ResourceType(IntEnum):
    """What a configuration belongs to; the value is the number in ConfigRecord."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@value
class ConfigResource:
    """A topic by name, a broker by its id in decimal, or every broker with the name ''."""

    type: ResourceType
    name: str


@value
class NewTopic:
    """A topic to create.

    Either counts, where -1 asks for the controller's default, or `assignments`: the replicas of
    partition 0, 1, ... with the preferred leader first.
    """

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: tuple[tuple[int, ...], ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


@value
class CreateTopics:
    topics: tuple[NewTopic, ...]
    validate_only: bool = False


@value
class DeleteTopics:
    names: tuple[str, ...]


@value
class Cursor:
    """Where a page begins: a topic, and a partition of it where that topic exists."""

    topic_name: str
    partition_index: int = 0


@value
class ListTopics:
    """All topics, in order of their names, a page of at most so many; 0 is a client without pages.

    To such a client an answer of several is refused: a part must not be taken for the whole.
    """

    cursor: Cursor | None = None
    response_topic_limit: int = 0


@value
class DescribeTopics:
    """These topics, each once, in the order asked; all, by name, when `names` is empty.

    Pages are as those of ListTopics, and what is counted are partitions.
    """

    names: tuple[str, ...] = ()
    cursor: Cursor | None = None
    response_partition_limit: int = 0


class AlterOperation(IntEnum):
    """How one key changes (KIP-339); the last two are for values that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@value
class ConfigChange:
    name: str
    operation: AlterOperation
    value: str | None = None


@value
class ConfigAlteration:
    """All changes of one resource; they take effect together or not at all."""

    resource: ConfigResource
    changes: tuple[ConfigChange, ...]


@value
class IncrementalAlterConfigs:
    alterations: tuple[ConfigAlteration, ...]
    validate_only: bool = False


@value
class DescribeConfigs:
    """What is set on these resources, and with `include_defaults` what applies where nothing is."""

    resources: tuple[ConfigResource, ...]
    include_defaults: bool = False


@value
class Listener:
    """A broker's listener; `security_protocol` is Kafka's number (0 PLAINTEXT, 1 SSL, ...)."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@value
class FeatureRange:
    """The levels of a feature that a node supports, both ends included."""

    name: str
    min_level: int
    max_level: int


@named_value
class RegisterBroker:
    """A broker process makes itself known; `incarnation_id` is new at each of its starts."""

    broker_id: int
    incarnation_id: bytes
    cluster_id: ClusterId
    listeners: tuple[Listener, ...]
    features: tuple[FeatureRange, ...] = ()
    rack: str | None = None
    log_dirs: tuple[bytes, ...] = ()


@named_value
class BrokerHeartbeat:
    """A registered broker is alive, has replayed up to an offset, and says what it wants next."""

    broker_id: int
    broker_epoch: int
    current_metadata_offset: Offset
    want_fence: bool = False
    want_shut_down: bool = False


@value
class ListBrokers:
    """All registered brokers, in order of their ids."""


@value
class UnregisterBroker:
    broker_id: int


WriteRequest: TypeAlias = (
    CreateTopics
    | DeleteTopics
    | IncrementalAlterConfigs
    | RegisterBroker
    | BrokerHeartbeat
    | UnregisterBroker
)
ReadRequest: TypeAlias = ListTopics | DescribeTopics | DescribeConfigs | ListBrokers
