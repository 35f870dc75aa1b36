"""Requests and replies of the controller, from and to protobuf.

Message and field names equal those of the dataclasses, so one walk over a message's descriptor
serves them all; only pairs (NameValue), replica lists (Replicas) and the leader have shapes of
their own. Bad input raises ValueError that names the field: a number that stands for nothing, a
string that no record can hold, more items than one request may have (rule 28).
"""

# ruff: noqa: ANN401 - one walk serves every message, whatever its type
from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from quorate.controller import replies, requests
from quorate.controller.decision import RECORDS_MAX
from quorate.records.errors import ErrorCode
from quorate.records.widths import SHORT_STRING, string_problem
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from enum import IntEnum

    from google.protobuf.message import Message

    from quorate.controller.slices import Slices

# Messages that are no dataclass: their fields are the items of a tuple, or its one field is it.
_PLAIN: Final = frozenset({"NameValue", "Replicas"})
_ENUMS: Final[dict[tuple[str, str], type[IntEnum]]] = {
    ("ConfigResource", "type"): requests.ResourceType,
    ("ConfigChange", "operation"): requests.AlterOperation,
    ("ConfigEntry", "source"): replies.ConfigSource,
}

# How many items a request may have. One costs the controller some tens of microseconds, and a
# request is decided in one turn of its loop.
ITEMS_MAX: Final = 1000
SLICE_ITEMS: Final = 100
_ITEMS_MAX: Final[dict[tuple[str, str], int]] = {
    ("ConfigAlteration", "changes"): 100,
    ("NewTopic", "assignments"): RECORDS_MAX,
    ("NewTopic", "configs"): 100,
    ("RegisterBroker", "features"): 100,
    ("RegisterBroker", "listeners"): 100,
    ("RegisterBroker", "log_dirs"): 100,
    ("Replicas", "ids"): 100,
}


def put(message: Message, value: Any) -> None:
    """Fill a message from the value of the same name."""
    for name in _field_names(type(value).__name__):
        item = getattr(value, name)
        if item is None:
            continue
        if isinstance(item, tuple):
            _put_all(getattr(message, name), item)
        else:
            _put_one(message, name, item)


def _put_one(message: Message, name: str, item: Any) -> None:
    if hasattr(item, "__dataclass_fields__"):
        part = getattr(message, name)
        part.SetInParent()
        put(part, item)
    else:
        setattr(message, name, item)


@cache
def _field_names(name: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(_shape(name)))


def _shape(name: str) -> Any:
    """The dataclass of that name."""
    return getattr(requests, name, None) or getattr(replies, name)


def _put_all(target: Any, items: tuple[Any, ...]) -> None:
    if not items or not hasattr(target, "add"):
        target.extend(items)
        return
    for item in items:
        if hasattr(item, "__dataclass_fields__"):
            put(target.add(), item)
        elif isinstance(message := target.add(), pb.NameValue):
            message.name, message.value = item
        else:
            message.ids.extend(item)


def from_message(message: Message) -> Any:
    """The dataclass of the same name; ValueError names a field that it cannot take."""
    return _reader(message.DESCRIPTOR.name)(message)


@cache
def _reader(name: str) -> Callable[[Any], Any]:
    """How messages of that name are read: their descriptor is walked once, not for each of them."""
    descriptors = getattr(pb, name).DESCRIPTOR.fields
    if name in _PLAIN:
        reads = [_field_reader(name, field) for field in descriptors]
        return reads[0] if len(reads) == 1 else lambda message: tuple(r(message) for r in reads)
    shape = _shape(name)
    readers = [(field.name, _field_reader(name, field)) for field in descriptors]
    names = tuple(field.name for field in fields(shape) if not field.kw_only)
    if names == tuple(field.name for field in descriptors):
        reads = [read for _, read in readers]
        return lambda message: shape(*[read(message) for read in reads])
    return lambda message: shape(**{key: read(message) for key, read in readers})


def _field_reader(owner: str, field: Any) -> Callable[[Any], Any]:
    name, get = field.name, attrgetter(field.name)
    read = _value_reader(owner, field)
    if field.is_repeated:
        limit = _items_max(owner, name)
        if limit is None:
            return lambda message: tuple([read(value) for value in get(message)])
        return partial(_many, f"{owner}.{name}", limit, get, read)
    if field.has_presence:
        if field.message_type is not None and name in _required(owner):
            return partial(_present, f"{owner}.{name}", name, get, read)
        return lambda message: read(get(message)) if message.HasField(name) else None
    return get if read is _as_it_is else lambda message: read(get(message))


def _value_reader(owner: str, field: Any) -> Callable[[Any], Any]:
    if field.message_type is not None:
        return _reader(field.message_type.name)
    if field.name == "error":
        return _error
    if field.type == field.TYPE_STRING and not hasattr(replies, owner):
        return _text_reader(f"{owner}.{field.name}")
    enum = _ENUMS.get((owner, field.name))
    return _as_it_is if enum is None else partial(_member, enum, f"{owner}.{field.name}")


@cache
def _required(name: str) -> frozenset[str]:
    """The fields of a dataclass that have no default."""
    shaped = fields(_shape(name))
    return frozenset(field.name for field in shaped if field.default is MISSING)


def _present(
    where: str, name: str, get: Callable[[Any], Any], read: Callable[[Any], Any], message: Any
) -> Any:
    if not message.HasField(name):
        raise ValueError(f"{where}: it is missing")
    return read(get(message))


def _items_max(owner: str, name: str) -> int | None:
    """None for replies: they are as long as what they tell of."""
    return None if hasattr(replies, owner) else _ITEMS_MAX.get((owner, name), ITEMS_MAX)


def _many(
    where: str, limit: int, get: Callable[[Any], Any], read: Callable[[Any], Any], message: Any
) -> tuple[Any, ...]:
    values = get(message)
    _check_count(where, len(values), limit)
    return tuple(map(read, values))


def _check_count(where: str, count: int, limit: int) -> None:
    if count > limit:
        raise ValueError(
            f"{where}: {count} items where a request may have {limit}: send several requests"
        )


def _text_reader(where: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if len(value) <= SHORT_STRING:
            return value
        problem = string_problem(value)
        if problem is not None:
            raise ValueError(f"{where}: {problem}")
        return value

    return read


def _as_it_is(value: Any) -> Any:
    return value


def _member(enum: type[IntEnum], where: str, value: int) -> IntEnum:
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(f"{member.value} {member.name}" for member in enum)
        raise ValueError(f"{where}: {value} is none of {known}") from None


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


_WRITES: Final = {
    requests.CreateTopics: "create_topics",
    requests.DeleteTopics: "delete_topics",
    requests.IncrementalAlterConfigs: "incremental_alter_configs",
    requests.RegisterBroker: "register_broker",
    requests.BrokerHeartbeat: "broker_heartbeat",
    requests.UnregisterBroker: "unregister_broker",
    replies.CreateTopicsReply: "create_topics",
    replies.DeleteTopicsReply: "delete_topics",
    replies.IncrementalAlterConfigsReply: "incremental_alter_configs",
    replies.RegisterBrokerReply: "register_broker",
    replies.BrokerHeartbeatReply: "broker_heartbeat",
    replies.UnregisterBrokerReply: "unregister_broker",
}
_READS: Final = {
    requests.ListTopics: "list_topics",
    requests.DescribeTopics: "describe_topics",
    requests.DescribeConfigs: "describe_configs",
    requests.ListBrokers: "list_brokers",
    replies.ListTopicsReply: "list_topics",
    replies.DescribeTopicsReply: "describe_topics",
    replies.DescribeConfigsReply: "describe_configs",
    replies.ListBrokersReply: "list_brokers",
}


def _put_chosen(message: Message, field_name: str, value: Any) -> None:
    part = getattr(message, field_name)
    part.SetInParent()
    put(part, value)


def write_request(request: requests.WriteRequest, sequence: int = 0) -> pb.WriteRequest:
    message = pb.WriteRequest(sequence=sequence)
    _put_chosen(message, _WRITES[type(request)], request)
    return message


def read_request(
    request: requests.ReadRequest,
    *,
    min_offset: int,
    current: bool,
    timeout_ms: int,
    even_if_behind: bool = False,
) -> pb.ReadRequest:
    message = pb.ReadRequest(
        min_offset=min_offset,
        current=current,
        timeout_ms=timeout_ms,
        even_if_behind=even_if_behind,
    )
    _put_chosen(message, _READS[type(request)], request)
    return message


def put_write_reply(result: pb.WriteResult, reply: replies.WriteReply) -> None:
    _put_chosen(result, _WRITES[type(reply)], reply)


def put_read_reply(response: pb.ReadResponse, reply: replies.ReadReply) -> None:
    for _ in put_in_slices(response, reply):
        pass


def put_in_slices(response: pb.ReadResponse, reply: replies.ReadReply) -> Iterator[None]:
    """The same with pauses, in which others may run: a reply has thousands of items."""
    message = getattr(response, _READS[type(reply)])
    message.SetInParent()
    for name in _field_names(type(reply).__name__):
        item = getattr(reply, name)
        if isinstance(item, tuple):
            target = getattr(message, name)
            for start in range(0, len(item), SLICE_ITEMS):
                _put_all(target, item[start : start + SLICE_ITEMS])
                yield
        elif item is not None:
            _put_one(message, name, item)


def chosen(message: Message, oneof: str) -> Any:
    """The dataclass behind whichever field of a oneof is set; ValueError when none is."""
    return from_message(_chosen(message, oneof))


def _chosen(message: Message, oneof: str) -> Any:
    name = message.WhichOneof(oneof)
    if name is None:
        raise ValueError(f"{oneof}: none is given")
    return getattr(message, name)


def chosen_in_slices(message: Message, oneof: str) -> Slices[Any]:
    """The same with pauses: a thousand items may have a hundred each, which takes 0.2 s."""
    return (yield from _read_in_slices(_chosen(message, oneof)))


def _read_in_slices(part: Message) -> Slices[Any]:
    """Item by item, and those of an item whose own may be many and have items: one topic's
    partitions, of which each names its replicas, are as much as a thousand topics.
    """
    owner = part.DESCRIPTOR.name
    field = _field_of_lists(owner)
    if field is None:
        return from_message(part)
    values = getattr(part, field.name)
    _check_count(f"{owner}.{field.name}", len(values), _items_max(owner, field.name) or ITEMS_MAX)
    is_deeper = _field_of_lists(field.message_type.name) is not None
    read = _value_reader(owner, field)
    items = []
    for value in values:
        items.append((yield from _read_in_slices(value)) if is_deeper else read(value))
        yield
    others = [other for other in part.DESCRIPTOR.fields if other is not field]
    rest = {other.name: _field_reader(owner, other)(part) for other in others}
    return _shape(owner)(**{field.name: tuple(items)}, **rest)


@cache
def _field_of_lists(owner: str) -> Any:
    """The field of a request whose items have items of their own; None where there is none."""
    for field in getattr(pb, owner).DESCRIPTOR.fields:
        inner = field.message_type.fields if field.message_type is not None else ()
        if field.is_repeated and any(part.is_repeated for part in inner):
            return field
    return None
