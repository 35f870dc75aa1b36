"""Encoders and decoders derived from schemas, compiled once for each version of a message.

Neighbouring fields of fixed size become one `struct` layout, every other field a pair of closures.
A reader takes (buffer, position) and answers (value, position behind it); a writer appends to a
bytearray. Sources: Kafka's protocol guide, KIP-482 (flexible versions and tagged fields).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from quorate.records.schema import (
    OWN_DEFAULTS,
    TAGGED,
    Field,
    Schema,
    SchemaError,
    Struct,
    schema_of,
    shapes_of,
)
from quorate.records.values import (
    FIXED,
    Reader,
    Writer,
    array,
    check_uuid,
    nullable_structure,
    number,
    numbers,
    octets,
    string,
    uuid,
    uuids,
)
from quorate.records.varint import Buffer, encode_uvarint, read_uvarint

T = TypeVar("T")
# What follows a structure's plain fields: reads into, or writes from, all its values.
_ReadTags: TypeAlias = Callable[[Buffer, int, list[Any]], int]
_WriteTags: TypeAlias = Callable[[bytearray, tuple[Any, ...]], None]


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """One version of one message. Both directions raise SchemaError for what does not fit."""

    name: str
    version: int
    read: Reader
    write: Writer

    def encode(self, value: T) -> bytes:
        """The message's bytes, without any frame."""
        out = bytearray()
        self.encode_into(out, value)
        return bytes(out)

    def encode_into(self, out: bytearray, value: T) -> None:
        """Appends the message's bytes to `out`."""
        try:
            self.write(out, value)
        except (struct.error, ValueError, TypeError, AttributeError) as error:
            raise SchemaError(f"{self.name} version {self.version}: {error}") from error

    def decode(self, buffer: Buffer, position: int = 0) -> tuple[T, int]:
        """The message at `position`, and the position behind it."""
        try:
            return self.read(buffer, position)
        except (struct.error, IndexError, ValueError) as error:
            raise SchemaError(f"{self.name} version {self.version}: {error}") from error


_CODECS: Final[dict[tuple[type, int], Codec[Any]]] = {}


def codec_of(cls: type[T], version: int) -> Codec[T]:
    """The codec of a class that `schema.message` made; compiled at its first use."""
    found = _CODECS.get((cls, version))
    if found is None:
        found = _CODECS[cls, version] = compile_codec(schema_of(cls), version, shapes_of(cls))
    return found


def compile_codec(schema: Schema, version: int, shapes: Mapping[str, type]) -> Codec[Any]:
    """The codec of one version; `shapes` has a slotted dataclass for each structure's name.

    Each class has the schema's fields and `tagged`, for the tagged fields that the schema lacks.
    Raises SchemaError for a version that the message does not have.
    """
    if version not in schema.versions:
        raise SchemaError(
            f"{schema.name} has versions {schema.versions.first} to {schema.versions.last}, "
            f"not {version}"
        )
    compiler = _Compiler(version, version in schema.flexible, shapes)
    read, write = compiler.structure(schema.body)
    return Codec(schema.name, version, read, write)


class _Part(NamedTuple):
    """A field, or with a slice a run of fixed fields, and where its value stands."""

    name: str
    slot: int | slice
    read: Reader
    write: Writer


class _Tag(NamedTuple):
    """A field that travels under a tag, unless it has its default."""

    slot: int
    tag: int
    default: Any
    read: Reader
    write: Writer


@dataclass(frozen=True, slots=True)
class _Compiler:
    version: int
    is_flexible: bool
    shapes: Mapping[str, type]

    def structure(self, body: Struct) -> tuple[Reader, Writer]:
        """Reader and writer of a structure.

        Values stand in a list in their order on the wire, then those that are tagged or absent,
        last the unknown tags; so runs of fixed fields are slices of it.
        """
        plain = [f for f in body.fields if self._has(f) and not self._is_tagged(f)]
        tagged = [f for f in body.fields if self._has(f) and self._is_tagged(f)]
        absent = [f for f in body.fields if not self._has(f)]
        order = [*plain, *tagged, *absent]
        defaults = [self.default(f) for f in order]
        names = [*(f.name for f in order), TAGGED]
        parts = self._parts(plain)
        tags = [
            _Tag(slot, field.tag, defaults[slot], *self.field(field))
            for slot, field in enumerate(tagged, len(plain))
            if field.tag is not None
        ]
        guards = [
            (slot, field.name, defaults[slot])
            for slot, field in enumerate(absent, len(plain) + len(tagged))
            if not field.ignorable
        ]
        cls = self.shapes[body.name]
        read_tags = _tags_reader(tags) if self.is_flexible else None
        write_tags = _tags_writer(tags) if self.is_flexible else _refuse_tags
        return (
            _structure_reader(cls, names, [*defaults, ()], parts, read_tags),
            _structure_writer(names, parts, _absent_guard(guards, self.version), write_tags),
        )

    def _has(self, field: Field) -> bool:
        return self.version in field.versions

    def _is_tagged(self, field: Field) -> bool:
        return field.tag is not None and self.version in field.tagged

    def _parts(self, plain: list[Field]) -> list[_Part]:
        parts: list[_Part] = []
        slot = 0
        for is_fixed, group in groupby(plain, key=lambda field: field.type in FIXED):
            run = list(group)
            if is_fixed:
                names = ", ".join(field.name for field in run)
                parts.append(_Part(names, slice(slot, slot + len(run)), *_fixed_run(run)))
            else:
                parts += [_Part(f.name, at, *self.field(f)) for at, f in enumerate(run, slot)]
            slot += len(run)
        return parts

    def default(self, field: Field) -> object:
        """The value of a field that the bytes leave out."""
        if field.default is not OWN_DEFAULTS:
            return field.default
        assert field.struct is not None
        values = {inner.name: self.default(inner) for inner in field.struct.fields}
        return self.shapes[field.struct.name](**values)

    def field(self, field: Field) -> tuple[Reader, Writer]:
        """Reader and writer of one value of this field, null included where it may be."""
        is_flexible = self.is_flexible
        if field.flexible is not None:
            is_flexible = self.version in field.flexible
        is_nullable = self.version in field.nullable
        if not field.is_array:
            return self._single(field, is_flexible=is_flexible, is_nullable=is_nullable)
        if field.element == "uuid":
            return uuids(is_flexible=is_flexible, is_nullable=is_nullable)
        if field.element in FIXED:
            code = FIXED[field.element]
            return numbers(code, is_flexible=is_flexible, is_nullable=is_nullable)
        element = self._single(field, is_flexible=is_flexible, is_nullable=False)
        return array(element, is_flexible=is_flexible, is_nullable=is_nullable)

    def _single(
        self, field: Field, *, is_flexible: bool, is_nullable: bool
    ) -> tuple[Reader, Writer]:
        match field.element:
            case "string":
                return string(is_flexible=is_flexible, is_nullable=is_nullable)
            case "bytes" | "records":
                return octets(is_flexible=is_flexible, is_nullable=is_nullable)
            case "uuid":
                return uuid()
            case fixed if fixed in FIXED:
                return number(FIXED[fixed])
            case _:
                assert field.struct is not None
                inner = self.structure(field.struct)
                return nullable_structure(inner) if is_nullable else inner


def _structure_reader(
    cls: type,
    names: list[str],
    defaults: list[Any],
    parts: list[_Part],
    read_tags: _ReadTags | None,
) -> Reader:
    new = object.__new__
    # Setting the slots themselves is how a frozen instance is filled without its __init__.
    setters = [getattr(cls, name).__set__ for name in names]
    steps = [(part.slot, part.read, part.name) for part in parts]

    def read(buffer: Buffer, position: int) -> tuple[Any, int]:
        values = defaults.copy()
        name = ""
        try:
            for slot, read_part, name in steps:  # noqa: B007 - named in the error
                values[slot], position = read_part(buffer, position)
        except (struct.error, IndexError, ValueError) as error:
            raise SchemaError(f"{name}: {error}") from error
        if read_tags is not None:
            position = read_tags(buffer, position, values)
        instance: object = new(cls)
        for set_slot, value in zip(setters, values, strict=True):
            set_slot(instance, value)
        return instance, position

    return read


def _structure_writer(
    names: list[str], parts: list[_Part], check_absent: _WriteTags, write_tags: _WriteTags
) -> Writer:
    # Named twice at least, because attrgetter answers with a tuple only then.
    getter = attrgetter(*names, TAGGED)
    steps = [(part.slot, part.write, part.name) for part in parts]

    def write(out: bytearray, value: object) -> None:
        values = getter(value)
        name = ""
        try:
            for slot, write_part, name in steps:  # noqa: B007 - named in the error
                write_part(out, values[slot])
        except (struct.error, ValueError, TypeError, AttributeError) as error:
            raise SchemaError(f"{name}: {error}") from error
        check_absent(out, values)
        write_tags(out, values)

    return write


def _fixed_run(run: list[Field]) -> tuple[Reader, Writer]:
    layout = struct.Struct(">" + "".join(FIXED[field.type] for field in run))
    unpack_from, pack, size = layout.unpack_from, layout.pack, layout.size
    uuid_indexes = [index for index, field in enumerate(run) if field.type == "uuid"]

    def read(buffer: Buffer, position: int) -> tuple[tuple[Any, ...], int]:
        return unpack_from(buffer, position), position + size

    def write(out: bytearray, values: tuple[Any, ...]) -> None:
        for index in uuid_indexes:
            check_uuid(values[index])
        out += pack(*values)

    return read, write


def _absent_guard(guards: list[tuple[int, str, Any]], version: int) -> _WriteTags:
    def check(_: bytearray, values: tuple[Any, ...]) -> None:
        for slot, name, default in guards:
            if values[slot] != default:
                raise SchemaError(
                    f"{name} is {values[slot]!r}, but version {version} has no such field"
                )

    return check


def _refuse_tags(_: bytearray, values: tuple[Any, ...]) -> None:
    if values[-1]:
        raise SchemaError("a version that is not flexible has no tagged fields")


def _tags_reader(tags: list[_Tag]) -> _ReadTags:
    known = {each.tag: (each.slot, each.read) for each in tags}

    def read_tags(buffer: Buffer, position: int, values: list[Any]) -> int:
        count, position = read_uvarint(buffer, position)
        if not count:
            return position
        unknown = []
        for _ in range(count):
            tag, position = read_uvarint(buffer, position)
            size, position = read_uvarint(buffer, position)
            end = position + size
            content = bytes(buffer[position:end])
            if len(content) != size:
                raise SchemaError(f"tag {tag} is cut off")
            position = end
            if tag in known:
                slot, read = known[tag]
                values[slot], used = read(content, 0)
                if used != size:
                    raise SchemaError(f"tag {tag} takes {used} of its {size} bytes")
            else:
                unknown.append((tag, content))
        values[-1] = tuple(unknown)
        return position

    return read_tags


def _tags_writer(tags: list[_Tag]) -> _WriteTags:
    known = [(each.slot, each.tag, each.default, each.write) for each in tags]

    def write_tags(out: bytearray, values: tuple[Any, ...]) -> None:
        found: list[tuple[int, bytes]] = list(values[-1])
        for slot, tag, default, write in known:
            if values[slot] != default:
                content = bytearray()
                write(content, values[slot])
                found.append((tag, bytes(content)))
        if not found:
            out.append(0)
            return
        found.sort()
        out += encode_uvarint(len(found))
        for tag, encoded in found:
            out += encode_uvarint(tag)
            out += encode_uvarint(len(encoded))
            out += encoded

    return write_tags
