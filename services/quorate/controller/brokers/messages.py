"""Requests and replies about brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from quorate.controller.authorization.authorizer import Operation, Permission
from quorate.controller.request_types import ReadRequestOf, WriteReply, WriteRequestOf
from quorate.records.errors import ErrorCode
from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from quorate.controller.features.messages import FeatureRange
    from quorate.records.ids import ClusterId, Offset


@value_type
class Listener:
    """A broker's listener; `security_protocol` is Kafka's number (0 PLAINTEXT, 1 SSL, ...)."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@keyword_value_type
class RegisterBroker(WriteRequestOf["RegisterBrokerReply"]):
    """Registers a broker process; `incarnation_id` is new at each of its starts."""

    broker_id: int
    incarnation_id: bytes
    cluster_id: ClusterId
    listeners: tuple[Listener, ...]
    features: tuple[FeatureRange, ...] = ()
    rack: str | None = None
    log_dirs: tuple[bytes, ...] = ()
    permission: ClassVar = Permission(Operation.CLUSTER_ACTION)


@keyword_value_type
class BrokerHeartbeat(WriteRequestOf["BrokerHeartbeatReply"]):
    """A registered broker is alive, has replayed up to an offset, and requests a state."""

    broker_id: int
    broker_epoch: int
    current_metadata_offset: Offset
    want_fence: bool = False
    want_shut_down: bool = False
    # No client relies on the reply.
    has_to_be_true: ClassVar[bool] = False
    permission: ClassVar = Permission(Operation.CLUSTER_ACTION)


@value_type
class ListBrokers(ReadRequestOf["ListBrokersReply"]):
    """All registered brokers, in order of their ids."""

    permission: ClassVar = Permission(Operation.DESCRIBE)


@value_type
class UnregisterBroker(WriteRequestOf["UnregisterBrokerReply"]):
    broker_id: int
    permission: ClassVar = Permission(Operation.ALTER)


@value_type
class RegisterBrokerReply(WriteReply):
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    broker_epoch: int = -1


@value_type
class BrokerHeartbeatReply(WriteReply):
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@value_type
class ListedBroker:
    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    listeners: tuple[Listener, ...]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[bytes, ...] = ()


@value_type
class ListBrokersReply:
    offset: Offset
    brokers: tuple[ListedBroker, ...]


@value_type
class UnregisterBrokerReply(WriteReply):
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


ITEMS_MAX: Final = {
    ("RegisterBroker", "features"): 100,
    ("RegisterBroker", "listeners"): 100,
    ("RegisterBroker", "log_dirs"): 100,
}
