"""Mutates fields of protobuf messages and decodes the result as production does.

The sender is faulty, of another release, or malicious. The production conversion of the bytes
returns a value or rejects them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.protobuf.descriptor import FieldDescriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.protobuf.message import Message

    from quorate.sim.randomness import RandomSource

M = TypeVar("M", bound="Message")
T = TypeVar("T")

_INT32: Final = (0, 1, -1, -2, 2, 255, 32_767, 32_768, 2**24, 2**31 - 1, -(2**31))
_INT64: Final = (*_INT32, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
_TEXTS: Final = (
    *("", " ", ".", "..", "\0", "a/b", "ä" * 200, "a" * 249, "a" * 300, "x" * 40_000),
    *("-1", "1e9", "nan", "null", "%s", "__cluster_metadata"),
)
_BYTES: Final = (b"", b"\0", bytes(16), b"\xff" * 16, bytes(range(17)), b"x" * 40_000)
_MANY: Final = 1500
_FIELDS_MAX: Final = 3
_UNSIGNED: Final = (
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
)
_WIDE: Final = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)


def mutated(message: M, random_source: RandomSource) -> M:
    """A copy of `message` with one to three changed fields, nested ones included."""
    changed = type(message)()
    changed.CopyFrom(message)
    for _ in range(random_source.between(1, _FIELDS_MAX)):
        owner, field = random_source.choice(list(_places(changed)))
        _change(owner, field, random_source)
    return changed


def received(message: Message, read: Callable[[Any], T]) -> T | None:
    """The message after encoding and decoding; None if the conversion rejects it."""
    try:
        return read(type(message).FromString(message.SerializeToString()))
    except ValueError:
        return None


def _places(message: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - any message
    """Yield each field of the message and of its nested messages, with its owner."""
    for field in message.DESCRIPTOR.fields:
        yield message, field
        if field.message_type is None:
            continue
        if field.is_repeated:
            for item in getattr(message, field.name)[:_FIELDS_MAX]:
                yield from _places(item)
        elif message.HasField(field.name):
            yield from _places(getattr(message, field.name))


def _change(owner: Any, field: Any, random_source: RandomSource) -> None:  # noqa: ANN401
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    if random_source.chance(0.1) or is_map:
        owner.ClearField(field.name)
    elif field.is_repeated:
        _change_many(owner, field, random_source)
    elif field.message_type is not None:
        getattr(owner, field.name).SetInParent()
    else:
        setattr(owner, field.name, _value(field, getattr(owner, field.name), random_source))


def _change_many(owner: Any, field: Any, random_source: RandomSource) -> None:  # noqa: ANN401
    """Add, duplicate, repeat, remove or replace elements of a list."""
    items = getattr(owner, field.name)
    if not items:
        if field.message_type is not None:
            items.add()
        else:
            items.append(_value(field, None, random_source))
        return
    match random_source.choice(("twice", "many", "less", "other")):
        case "twice":
            items.extend(items[:1])
        case "many":
            items.extend(items[:1] * (_MANY - len(items)))
        case "less":
            del items[random_source.between(0, len(items) - 1) :]
        case _ if field.message_type is None:
            items[0] = _value(field, items[0], random_source)


def _value(field: Any, before: Any, random_source: RandomSource) -> Any:  # noqa: ANN401
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            return not before
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return random_source.choice(_BYTES)
        case FieldDescriptor.CPPTYPE_STRING:
            return random_source.choice(_TEXTS)
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return random_source.choice((0.0, -1.0, 1e300, float("inf"), float("nan")))
        case FieldDescriptor.CPPTYPE_ENUM:
            return random_source.choice((0, 1, 99, -1))
    number = (before or 0) + random_source.choice((-1, 1)) if random_source.chance(0.3) else None
    if number is None:
        number = random_source.choice(_INT64 if field.cpp_type in _WIDE else _INT32)
    limit = 2**63 - 1 if field.cpp_type in _WIDE else 2**31 - 1
    return min(limit, max(0 if field.cpp_type in _UNSIGNED else -limit - 1, number))
