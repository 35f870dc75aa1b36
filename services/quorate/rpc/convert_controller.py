"""Requests and replies of the controller, from and to protobuf.

Message and field names equal those of the dataclasses, so one walk over a message's descriptor
serves them all; only pairs (NameValue), replica lists (Replicas) and the leader have shapes of
their own. Bad input raises ValueError that names the field.
"""

# ruff: noqa: ANN401 - one walk serves every message, whatever its type
from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import Message

from quorate.controller import replies, requests
from quorate.records.errors import ErrorCode
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb

if TYPE_CHECKING:
    from enum import IntEnum

_ENUMS: Final[dict[tuple[str, str], type[IntEnum]]] = {
    ("ConfigResource", "type"): requests.ResourceType,
    ("ConfigChange", "operation"): requests.AlterOperation,
    ("ConfigEntry", "source"): replies.ConfigSource,
}


def to_message(value: Any) -> Message:
    """The protobuf message of the same name, with the same fields."""
    message: Message = getattr(pb, type(value).__name__)()
    for field in fields(value):
        item = getattr(value, field.name)
        if item is None:
            continue
        if isinstance(item, tuple):
            getattr(message, field.name).extend([_to_item(field.name, part) for part in item])
        elif hasattr(item, "__dataclass_fields__"):
            getattr(message, field.name).CopyFrom(to_message(item))
        else:
            setattr(message, field.name, item)
    return message


def _to_item(field_name: str, item: Any) -> Any:
    if isinstance(item, tuple):
        if field_name == "configs":
            return pb.NameValue(name=item[0], value=item[1])
        return pb.Replicas(ids=item)
    if hasattr(item, "__dataclass_fields__"):
        return to_message(item)
    return item


def from_message(message: Message) -> Any:
    """The dataclass of the same name; ValueError names a field that it cannot take."""
    name = message.DESCRIPTOR.name
    if isinstance(message, pb.NameValue):
        return (message.name, message.value)
    if isinstance(message, pb.Replicas):
        return tuple(message.ids)
    shape = getattr(requests, name, None) or getattr(replies, name)
    values = {field.name: _from_field(name, message, field) for field in message.DESCRIPTOR.fields}
    return shape(**values)


def _from_field(owner: str, message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return tuple(from_message(v) if isinstance(v, Message) else v for v in value)
    if field.has_presence and not message.HasField(field.name):
        return None
    if isinstance(value, Message):
        return from_message(value)
    if field.name == "error":
        return _error(value)
    enum = _ENUMS.get((owner, field.name))
    if enum is None:
        return value
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(f"{member.value} {member.name}" for member in enum)
        raise ValueError(f"{owner}.{field.name}: {value} is none of {known}") from None


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


def write_request(request: requests.WriteRequest, sequence: int = 0) -> pb.WriteRequest:
    message = pb.WriteRequest(sequence=sequence)
    getattr(message, _WRITES[type(request)]).CopyFrom(to_message(request))
    return message


def read_request(
    request: requests.ReadRequest, *, min_offset: int, current: bool, timeout_ms: int
) -> pb.ReadRequest:
    message = pb.ReadRequest(min_offset=min_offset, current=current, timeout_ms=timeout_ms)
    getattr(message, _READS[type(request)]).CopyFrom(to_message(request))
    return message


def put_write_reply(result: pb.WriteResult, reply: replies.WriteReply) -> None:
    getattr(result, _WRITES[type(reply)]).CopyFrom(to_message(reply))


def put_read_reply(response: pb.ReadResponse, reply: replies.ReadReply) -> None:
    getattr(response, _READS[type(reply)]).CopyFrom(to_message(reply))


def chosen(message: Message, oneof: str) -> Any:
    """The dataclass behind whichever field of a oneof is set; ValueError when none is."""
    name = message.WhichOneof(oneof)
    if name is None:
        raise ValueError(f"{oneof}: none is given")
    return from_message(getattr(message, name))
