"""Controller requests and replies from and to their protobuf envelopes.

A message in an envelope has the name and the fields of its dataclass (rpc/convert/codegen.py).
"""

# ruff: noqa: ANN401 - one walk serves every message, whatever its type
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from quorate.controller.message_registry import ITEMS_MAX
from quorate.rpc.convert.codegen import (
    check_count,
    dataclass_named,
    field_names,
    items_max,
    make_filler,
    make_reader,
)
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.message import Message

    from quorate.controller.request_types import ReadReply, ReadRequest, WriteReply, WriteRequest
    from quorate.controller.slices import Slices

SLICE_ITEMS: Final = 100


def fill_message(message: Message, value: Any) -> None:
    """Fill a fresh message from the value of the same name."""
    make_filler(type(value).__name__)(message, value)


def from_message(message: Message) -> Any:
    """Convert to the dataclass of the same name; ValueError names a field it rejects."""
    return make_reader(message.DESCRIPTOR.name)(message)


def _fields_of_envelopes() -> dict[type, str]:
    """Map each request and reply type to its field in the envelope."""
    envelopes: Any = (
        pb.WriteRequest.DESCRIPTOR.oneofs_by_name["request"],
        pb.WriteResult.DESCRIPTOR.oneofs_by_name["reply"],
        pb.ReadRequest.DESCRIPTOR.oneofs_by_name["request"],
        pb.ReadResponse.DESCRIPTOR.oneofs_by_name["reply"],
    )
    fields = (field for oneof in envelopes for field in oneof.fields)
    return {dataclass_named(field.message_type.name): field.name for field in fields}


_FIELDS: Final = _fields_of_envelopes()


class _Putters(dict[type, "Callable[[Any, Any], None]"]):
    """The generated functions that put values of a type into their envelope."""

    def __missing__(self, shape: type) -> Callable[[Any, Any], None]:
        made = self[shape] = make_filler(shape.__name__, _FIELDS[shape])
        return made


_PUTTERS: Final = _Putters()


def write_request(request: WriteRequest, sequence: int = 0) -> pb.WriteRequest:
    message = pb.WriteRequest(sequence=sequence)
    _PUTTERS[type(request)](message, request)
    return message


def read_request(
    request: ReadRequest,
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
    _PUTTERS[type(request)](message, request)
    return message


def put_write_reply(result: pb.WriteResult, reply: WriteReply) -> None:
    _PUTTERS[type(reply)](result, reply)


def put_read_reply(response: pb.ReadResponse, reply: ReadReply) -> None:
    for _ in put_in_slices(response, reply):
        pass


def put_in_slices(response: pb.ReadResponse, reply: ReadReply) -> Iterator[None]:
    """Put a reply, yielding in between so that others may run: it may have thousands of items."""
    message = getattr(response, _FIELDS[type(reply)])
    message.SetInParent()
    return put_reply_in_slices(message, reply)


def put_reply_in_slices(message: Any, reply: ReadReply) -> Iterator[None]:
    """Fill the fresh message of a reply, yielding in between."""
    for name in field_names(type(reply).__name__):
        item = getattr(reply, name)
        if isinstance(item, tuple):
            add = getattr(message, name).add
            for start in range(0, len(item), SLICE_ITEMS):
                for each in item[start : start + SLICE_ITEMS]:
                    fill_message(add(), each)
                yield
        elif hasattr(item, "__dataclass_fields__"):
            make_filler(type(item).__name__, name)(message, item)
        elif item is not None:
            setattr(message, name, item)


class _Readers(dict[tuple[type, str], "Callable[[Any], Any]"]):
    """The generated functions that read the message in a field of an envelope."""

    def __missing__(self, place: tuple[Any, str]) -> Callable[[Any], Any]:
        envelope, name = place
        made = self[place] = make_reader(envelope.DESCRIPTOR.fields_by_name[name].message_type.name)
        return made


_READERS: Final = _Readers()


def request_in(message: Message, oneof: str) -> Any:
    """Return the dataclass of the field that is set in a oneof; ValueError if none is."""
    name = message.WhichOneof(oneof)
    if name is None:
        raise ValueError(f"{oneof}: none is given")
    return _READERS[type(message), name](getattr(message, name))


def chosen_in_slices(message: Message, oneof: str) -> Slices[Any]:
    """Do what `chosen` does, yielding in between.

    A thousand items of a hundred items each take 0.2 s.
    """
    name = message.WhichOneof(oneof)
    if name is None:
        raise ValueError(f"{oneof}: none is given")
    return (yield from from_message_in_slices(getattr(message, name)))


def read_request_in(message: pb.ReadRequest) -> ReadRequest:
    """Return the read in its envelope. Raises ValueError, also for options without effect there."""
    request: ReadRequest = request_in(message, "request")
    if getattr(message, message.WhichOneof("request") or "").HasField("options"):
        raise ValueError("options: in a ReadRequest the fields beside the request are what counts")
    return request


def from_message_in_slices(part: Message) -> Slices[Any]:
    """Convert item by item, and nested items one by one if they have lists themselves.

    The partitions of one topic, each with its replicas, may be as many as the items of a thousand
    topics.
    """
    owner = part.DESCRIPTOR.name
    field = _field_of_lists(owner)
    if field is None:
        return from_message(part)
    values = getattr(part, field.name)
    check_count(f"{owner}.{field.name}", len(values), items_max(owner, field.name) or ITEMS_MAX)
    is_deeper = _field_of_lists(field.message_type.name) is not None
    read = make_reader(field.message_type.name)
    items = []
    for value in values:
        items.append((yield from from_message_in_slices(value)) if is_deeper else read(value))
        yield
    return make_reader(owner, field.name)(part, tuple(items))


@cache
def _field_of_lists(owner: str) -> Any:
    """Return the field of a request whose items contain lists; None if there is none."""
    for field in getattr(pb, owner).DESCRIPTOR.fields:
        inner = field.message_type.fields if field.message_type is not None else ()
        if field.is_repeated and any(part.is_repeated for part in inner):
            return field
    return None
