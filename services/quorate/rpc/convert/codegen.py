"""Generates the conversion functions between dataclasses and protobuf messages.

There is one straight-line function for each message and direction. Message and field names equal
those of the dataclasses, so walking a message's descriptor generates all of them
(records/codec/code_builder.py); only pairs (NameValue) and replica lists (Replicas) have types of
their own. Bad input raises ValueError that names the field: an unknown enum number, a string that
does not fit into a record, more items than one request may have (rule `input_bounds`).
"""

# ruff: noqa: ANN401 - one walk serves every message, whatever its type
from __future__ import annotations

import sys
from dataclasses import MISSING, fields
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from quorate.controller.message_registry import BOUNDS, ITEMS_MAX, SHAPES
from quorate.records.codec.code_builder import CodeBuilder
from quorate.records.errors import ErrorCode
from quorate.records.field_limits import SHORT_STRING, string_problem
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# Messages without a dataclass: their value is the tuple of their fields, or their only field.
_PLAIN: Final = frozenset({"NameValue", "Replicas"})


def dataclass_named(name: str) -> Any:
    """Return the dataclass of that name."""
    return SHAPES[name]


def _enum_of(owner: str, name: str) -> type[IntEnum] | None:
    """Return the enum of a field's numbers; None for plain numbers."""
    if owner in _PLAIN:
        return None
    shape = dataclass_named(owner)
    kinds = {field.name: str(field.type) for field in fields(shape)}
    # Looked up by the name in the annotation: only names of its own module can be enums of a
    # metadata kind.
    named = vars(sys.modules[shape.__module__]).get(kinds[name])
    return named if isinstance(named, type) and issubclass(named, IntEnum) else None


def _fields_of(name: str) -> Any:
    """Return the fields that the dataclass also has: read options are not part of a request."""
    every = getattr(pb, name).DESCRIPTOR.fields
    return [field for field in every if field.message_type is not pb.ReadOptions.DESCRIPTOR]


def _names_within(name: str) -> Iterator[str]:
    """Yield the name of the message, and those of all messages that it may contain."""
    yield name
    for field in _fields_of(name):
        if field.message_type is not None:
            yield from _names_within(field.message_type.name)


# The messages that a request may contain: their sizes are limited, those of replies are not.
_ASKED: Final = frozenset((*_names_within("WriteRequest"), *_names_within("ReadRequest")))


@cache
def field_names(name: str) -> tuple[str, ...]:
    """Return the field names of a dataclass, in its order."""
    return tuple(field.name for field in fields(dataclass_named(name)))


# --- from messages ------------------------------------------------------------------------------


@cache
def make_reader(name: str, given: str | None = None) -> Callable[..., Any]:
    """Generate the function that reads messages of that name.

    The field `given`, if any, is its second argument.
    """
    source = CodeBuilder(f"read {name}", "message", *([] if given is None else [given]))
    source.line(f"return {_read(source, name, 'message', given)}")
    made: Callable[..., Any] = source.compiled()
    return made


def _read(code_builder: CodeBuilder, owner: str, message: str, given: str | None = None) -> str:
    """Add the lines that read a message, and return the expression of its value."""
    values: dict[str, str] = {}
    for field in _fields_of(owner):
        is_given = field.name == given
        values[field.name] = (
            field.name if is_given else _read_field(code_builder, owner, field, message)
        )
    if owner in _PLAIN:
        alone, *others = values.values()
        return f"({alone}, {', '.join(others)})" if others else alone
    return code_builder.instance(dataclass_named(owner), values)


def _read_field(code_builder: CodeBuilder, owner: str, field: Any, message: str) -> str:
    """Add the lines that read one field, and return the expression of its value."""
    value = f"{message}.{field.name}"
    if field.is_repeated:
        return _read_many(code_builder, owner, field, value)
    if not field.has_presence:
        return _read_plain(code_builder, owner, field, value)
    is_absent = f"not {message}.HasField({field.name!r})"
    if field.message_type is None:
        # Only an empty value may be absent.
        local = code_builder.local(field.name)
        code_builder.line(f"{local} = {value}")
        with code_builder.block(f"if not {local} and {is_absent}:"):
            code_builder.line(f"{local} = None")
        with code_builder.block("else:"):
            code_builder.line(f"{local} = {_read_plain(code_builder, owner, field, local)}")
        return local
    if field.name in _required(owner):
        missing = code_builder.bind(_missing, "missing")
        with code_builder.block(f"if {is_absent}:"):
            code_builder.line(f"{missing}({f'{owner}.{field.name}'!r})")
        return _read_part(code_builder, field, value)
    local = code_builder.local(field.name)
    with code_builder.block(f"if {is_absent}:"):
        code_builder.line(f"{local} = None")
    with code_builder.block("else:"):
        code_builder.line(f"{local} = {_read_part(code_builder, field, value)}")
    return local


def _read_part(code_builder: CodeBuilder, field: Any, value: str) -> str:
    local = code_builder.local(field.name)
    code_builder.line(f"{local} = {value}")
    return _read(code_builder, field.message_type.name, local)


def _read_many(code_builder: CodeBuilder, owner: str, field: Any, value: str) -> str:
    values, where = code_builder.local(field.name), f"{owner}.{field.name}"
    code_builder.line(f"{values} = {value}")
    limit = items_max(owner, field.name)
    if limit is not None:
        check = code_builder.bind(check_count, "check_count")
        with code_builder.block(f"if len({values}) > {limit}:"):
            code_builder.line(f"{check}({where!r}, len({values}), {limit})")
    # A slice copies the container to a list in one step; a loop over the container itself ends with
    # an exception.
    if field.message_type is None and not _is_bounded_text(owner, field):
        return f"tuple({values}[:])"
    items, item = code_builder.local("items"), code_builder.local("item")
    code_builder.line(f"{items} = []")
    with code_builder.block(f"for {item} in {values}[:]:"):
        if field.message_type is None:
            read = _read_plain(code_builder, owner, field, item)
        else:
            read = _read(code_builder, field.message_type.name, item)
        code_builder.line(f"{items}.append({read})")
    return f"tuple({items})"


def _read_plain(code_builder: CodeBuilder, owner: str, field: Any, value: str) -> str:
    """Add the lines that read a number, a string or bytes."""
    where, local = f"{owner}.{field.name}", code_builder.local(field.name)
    enum = _enum_of(owner, field.name)
    if field.name == "error":
        known = code_builder.bind({int(code): code for code in ErrorCode}.get, "known")
        unknown = code_builder.bind(ErrorCode.UNKNOWN_SERVER_ERROR, "unknown")
        return f"{known}({value}, {unknown})"
    if enum is not None:
        known = code_builder.bind({int(member): member for member in enum}, "known")
        no_member = code_builder.bind(_no_member, "no_member")
        code_builder.line(f"{local} = {known}.get({value})")
        with code_builder.block(f"if {local} is None:"):
            code_builder.line(f"{no_member}({known}, {where!r}, {value})")
        return local
    if _is_bounded_text(owner, field):
        check = code_builder.bind(_check_text, "check_text")
        text = value
        if not value.isidentifier():
            text = local
            code_builder.line(f"{text} = {value}")
        with code_builder.block(f"if len({text}) > {SHORT_STRING}:"):
            code_builder.line(f"{check}({where!r}, {text})")
        return text
    return value


def _is_bounded_text(owner: str, field: Any) -> bool:
    return field.type == field.TYPE_STRING and owner in _ASKED


def _required(name: str) -> frozenset[str]:
    """Return the fields of a dataclass that have no default."""
    shaped = fields(dataclass_named(name))
    return frozenset(field.name for field in shaped if field.default is MISSING)


def items_max(owner: str, name: str) -> int | None:
    """Return the most items of a field; None for replies, which may be of any length."""
    return BOUNDS.get((owner, name), ITEMS_MAX) if owner in _ASKED else None


def check_count(where: str, count: int, limit: int) -> None:
    """Raise ValueError for more items than a request may have."""
    if count > limit:
        raise ValueError(
            f"{where}: {count} items where a request may have {limit}: send several requests"
        )


def _missing(where: str) -> NoReturn:
    raise ValueError(f"{where}: it is missing")


def _check_text(where: str, value: str) -> None:
    problem = string_problem(value)
    if problem is not None:
        raise ValueError(f"{where}: {problem}")


def _no_member(members: Mapping[int, IntEnum], where: str, value: int) -> NoReturn:
    known = ", ".join(f"{number} {member.name}" for number, member in members.items())
    raise ValueError(f"{where}: {value} is none of {known}")


# --- to messages --------------------------------------------------------------------------------


@cache
def make_filler(name: str, inside: str | None = None) -> Callable[[Any, Any], None]:
    """Generate the function that fills a fresh message, or its field `inside`, from a value."""
    source = CodeBuilder(f"put {name}", "message", "value")
    if inside is None:
        _put(source, name, "message", "value")
    else:
        _put_part(source, name, f"message.{inside}", "value")
    made: Callable[[Any, Any], None] = source.compiled()
    return made


def _put_part(code_builder: CodeBuilder, owner: str, part: str, value: str) -> None:
    """Add the lines that fill a nested message, which is present even if empty."""
    message = code_builder.local("part")
    code_builder.line(f"{message} = {part}")
    code_builder.line(f"{message}.SetInParent()")
    _put(code_builder, owner, message, value)


def _put(code_builder: CodeBuilder, owner: str, message: str, value: str) -> None:
    by_name = {field.name: field for field in _fields_of(owner)}
    if owner in _PLAIN:
        if len(by_name) == 1:
            code_builder.line(f"{message}.{next(iter(by_name))}.extend({value})")
        else:
            code_builder.line(f"{', '.join(f'{message}.{name}' for name in by_name)} = {value}")
        return
    if not by_name:
        code_builder.line("pass")
    for name in field_names(owner):
        item = code_builder.local(name)
        code_builder.line(f"{item} = {value}.{name}")
        _put_field(code_builder, by_name[name], f"{message}.{name}", item)


def _put_field(code_builder: CodeBuilder, field: Any, target: str, item: str) -> None:
    """Add the lines that set a field of a fresh message, whose fields are all zero.

    Fields that are zero are not set, unless an absent field means something else than zero.
    """
    inner = None if field.message_type is None else field.message_type.name
    is_there = f"if {item} is not None:" if field.has_presence else f"if {item}:"
    with code_builder.block(is_there):
        if not field.is_repeated:
            if inner is None:
                code_builder.line(f"{target} = {item}")
            else:
                _put_part(code_builder, inner, target, item)
        elif inner is None:
            code_builder.line(f"{target}.extend({item})")
        else:
            add, each, part = (code_builder.local(hint) for hint in ("add", "each", "part"))
            code_builder.line(f"{add} = {target}.add")
            with code_builder.block(f"for {each} in {item}:"):
                code_builder.line(f"{part} = {add}()")
                _put(code_builder, inner, part, each)
