"""Inputs and outputs of a decision: its context, the records it proposes, its reply.

One decision is atomic and fits into one batch: at most RECORDS_MAX records, and limited in bytes.
Records are encoded here, once, in the versions that the finalized metadata.version requires.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from quorate.controller.authorization.authorizer import UNLIMITED
from quorate.controller.errors import RefusedError
from quorate.controller.features.levels import encode_at
from quorate.controller.request_types import RECORDS_MAX, Sender
from quorate.records.batch import BATCH_BYTES_MAX, HEADER_BYTES
from quorate.records.codec.schema import SchemaError
from quorate.records.errors import ErrorCode
from quorate.records.field_limits import STRING_BYTES_MAX, record_problem
from quorate.records.metadata import decode_record
from quorate.records.value_types import keyword_value_type, value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from quorate.controller.authorization.authorizer import Authorizer, Caller, Rights
    from quorate.controller.image import MetadataDelta, MetadataImage, View
    from quorate.controller.request_types import WriteReply
    from quorate.records.ids import ClusterId, Offset, TopicId
    from quorate.records.metadata import MetadataRecord

S = TypeVar("S")

# Largest overhead of a record in a batch besides its value: length, attributes, deltas, sizes.
_RECORD_OVERHEAD: Final = 24


@keyword_value_type
class ControllerSettings:
    """Kafka's settings that decisions depend on; `new_topic_id` is the only randomness.

    Without an authorizer every caller may do everything.
    """

    cluster_id: ClusterId
    new_topic_id: Callable[[], TopicId]
    num_partitions: int = 1
    default_replication_factor: int = 1
    broker_session_timeout_ms: int = 9000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    authorizer: Authorizer | None = None


class VolatileState:
    """Volatile state of metadata kinds while a controller is active, keyed by type.

    It is not in the log: each active controller starts with a new one, and decisions change it.
    """

    def __init__(self, states: Iterable[object]) -> None:
        self._by_type: dict[type, Any] = {type(state): state for state in states}

    def of(self, kind: type[S]) -> S:
        """The state of that type."""
        state: S = self._by_type[kind]
        return state

    def put(self, state: object) -> None:
        """Replace the state of that type."""
        self._by_type[type(state)] = state


class VolatileChange(Protocol):
    """A change of volatile state, applied when its decision takes effect; immutable."""

    def apply(self, soft: VolatileState) -> None: ...


class Decided(Protocol):
    """Everything that the active controller has decided so far."""

    view: View
    end_offset: Offset


@value_type
class Context:
    """Inputs of a decision: the state with everything decided so far, the caller and the time.

    `freeze` makes an image of it, for decisions that read all partitions; it costs as much as a few
    config changes. `waiting` are the brokers whose heartbeats wait to be decided.
    """

    decided: Decided
    freeze: Callable[[], MetadataImage]
    soft: VolatileState
    settings: ControllerSettings
    caller: Caller
    now_ms: int
    waiting: Container[Sender] = ()

    @property
    def view(self) -> View:
        """The current metadata. A decision reads it again after each pause."""
        return self.decided.view

    @property
    def rights(self) -> Rights:
        """The rights of the caller under the current metadata."""
        authorizer = self.settings.authorizer
        return UNLIMITED if authorizer is None else authorizer.rights(self.view, self.caller)

    @property
    def next_offset(self) -> Offset:
        """The offset of the decision's first record, provided that it does not pause."""
        return self.decided.end_offset


class Bulk(ABC):
    """A large number of records that are decided, encoded and applied together."""

    __slots__ = ()

    values: Sequence[bytes]

    @abstractmethod
    def replay(self, delta: MetadataDelta) -> None:
        """Apply all of them."""


@value_type
class Savepoint:
    """The size of a proposal at one point."""

    items: int
    values: int
    bytes_left: int


class Proposal:
    """The records of one decision, growing while they fit into one batch."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._bytes_left = BATCH_BYTES_MAX - HEADER_BYTES
        # Number of records for which space is reserved.
        self._kept = 0
        # In their order.
        self.items: list[MetadataRecord | Bulk] = []
        self.values: list[bytes] = []

    @property
    def records(self) -> list[MetadataRecord]:
        """The records that were added one by one."""
        return [item for item in self.items if not isinstance(item, Bulk)]

    def add(self, records: Sequence[MetadataRecord]) -> bool:
        """Add all of these, or none and return False: they need a batch of their own.

        Raises RefusedError for values that no record can hold (rule `input_bounds`).
        """
        if not self.has_room(len(records)):
            return False
        values = [self._encoded(record) for record in records]
        return self._take(records, values)

    def add_bulk(self, bulk: Bulk) -> bool:
        """Add all of these, or none and return False."""
        return self.has_room(len(bulk.values)) and self._take((bulk,), bulk.values)

    def keep_room(self, records: int, size: int) -> bool:
        """Reserve space for `records` records of `size` bytes in total; False if none is left."""
        size += _RECORD_OVERHEAD * records
        if not self.has_room(records) or size > self._bytes_left:
            return False
        self._kept += records
        self._bytes_left -= size
        return True

    def give_room(self, records: int, size: int) -> None:
        """Release reserved space for records that are added now."""
        self._kept -= records
        self._bytes_left += size + _RECORD_OVERHEAD * records

    def _take(self, items: Sequence[MetadataRecord | Bulk], values: Sequence[bytes]) -> bool:
        size = sum(map(len, values)) + _RECORD_OVERHEAD * len(values)
        if size > self._bytes_left:
            return False
        self._bytes_left -= size
        self.items.extend(items)
        self.values.extend(values)
        return True

    def savepoint(self) -> Savepoint:
        """A savepoint for `rollback_to`."""
        return Savepoint(len(self.items), len(self.values), self._bytes_left)

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Remove everything that was added since."""
        del self.items[savepoint.items :]
        del self.values[savepoint.values :]
        self._bytes_left = savepoint.bytes_left

    def has_room(self, count: int) -> bool:
        """True if the batch has room for `count` more records; their size is not considered."""
        return len(self.values) + self._kept + count <= RECORDS_MAX

    def add_or_reject(self, record: MetadataRecord, what: str) -> None:
        """Add one record. Raises RefusedError if it does not fit."""
        if not self.add((record,)):
            raise RefusedError(ErrorCode.POLICY_VIOLATION, too_large(what))

    def _encoded(self, record: MetadataRecord) -> bytes:
        try:
            value = encode_at(self._level, record)
        except SchemaError as error:
            message = f"{error}; give a value that Kafka's record can hold."
            raise RefusedError(ErrorCode.INVALID_REQUEST, message) from error
        # A string that is too long implies a value that is too long.
        problem = record_problem(record) if len(value) > STRING_BYTES_MAX else None
        if problem is not None:
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"{problem}.")
        return value


@value_type
class Outcome:
    """The result of a decision: records, the reply, and changes of volatile state."""

    proposal: Proposal
    reply: WriteReply | None
    soft: tuple[VolatileChange, ...] = ()


@value_type
class Decision:
    """Records to append at `base_offset` as part of one batch, and the reply to defer.

    The reply is valid once the high watermark reaches `end_offset`, with or without records: it may
    depend on earlier decisions that are not committed yet. `values` are the encoded records.
    `reply` is None for periodic decisions. `changes_soft` is set if the time of the next periodic
    decision may have changed.
    """

    values: tuple[bytes, ...]
    reply: WriteReply | None
    base_offset: Offset
    end_offset: Offset
    changes_soft: bool = False

    @property
    def records(self) -> tuple[MetadataRecord, ...]:
        """The decoded records. Decoding is slow, for use with few decisions."""
        return tuple([decode_record(value)[0] for value in self.values])


def too_large(what: str) -> str:
    """The message of POLICY_VIOLATION for an item that no longer fits into the batch."""
    return (
        f"{what} does not fit into one batch of at most {RECORDS_MAX} records and"
        f" {BATCH_BYTES_MAX} bytes with the rest of the request; split the request."
    )
