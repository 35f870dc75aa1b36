"""Encoders and decoders derived from schemas, compiled once for each version of a message.

Neighbouring fields of fixed size become one `struct` layout, every other field a pair of closures.
Generated functions call these, and replace them if they are too slow
(records/codec/struct_codegen.py). A reader takes (buffer, position) and returns (value, position
after it); a writer appends to a bytearray. Sources: Kafka's protocol guide, KIP-482 (flexible
versions and tagged fields).
"""

from __future__ import annotations

import struct
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from quorate.records.codec.primitives import (
    FIXED,
    Reader,
    Writer,
    array,
    nullable_structure,
    number,
    numbers,
    octets,
    string,
    uuid,
    uuids,
)
from quorate.records.codec.schema import (
    OWN_DEFAULTS,
    Field,
    Schema,
    SchemaError,
    Struct,
    schema_of,
    shapes_of,
)
from quorate.records.codec.struct_codegen import (
    TEXT,
    Part,
    ReadTags,
    Run,
    Tag,
    Tags,
    make_struct_decoder,
    make_struct_encoder,
)
from quorate.records.codec.varint import Buffer, read_uvarint
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


@value_type
class Codec(Generic[T]):
    """One version of one message. Both directions raise SchemaError for invalid data."""

    name: str
    version: int
    read: Reader
    write: Writer

    def encode(self, value: T) -> bytes:
        """Encode a message, without any frame."""
        out = bytearray()
        self.encode_into(out, value)
        return bytes(out)

    def encode_into(self, out: bytearray, value: T) -> None:
        """Append the message's bytes to `out`."""
        try:
            self.write(out, value)
        except (struct.error, ValueError, TypeError, AttributeError) as error:
            raise SchemaError(f"{self.name} version {self.version}: {error}") from error

    def decode(self, buffer: Buffer, position: int = 0) -> tuple[T, int]:
        """Decode the message at `position`; returns it and the position after it."""
        try:
            return self.read(buffer, position)
        except (struct.error, IndexError, ValueError) as error:
            raise SchemaError(f"{self.name} version {self.version}: {error}") from error


_CODECS: Final[dict[tuple[type, int], Codec[Any]]] = {}


def codec_of(cls: type[T], version: int) -> Codec[T]:
    """The codec of a class made by `schema.message`, compiled at its first use."""
    found = _CODECS.get((cls, version))
    if found is None:
        found = _CODECS[cls, version] = compile_codec(schema_of(cls), version, shapes_of(cls))
    return found


def compile_codec(schema: Schema, version: int, shapes: Mapping[str, type]) -> Codec[Any]:
    """Compile the codec of one version; `shapes` has a slotted dataclass per structure name.

    Each class has the schema's fields and `tagged`, for tagged fields that the schema does not
    know. Raises SchemaError for a version that the message does not have.
    """
    if version not in schema.versions:
        raise SchemaError(
            f"{schema.name} has versions {schema.versions.first} to {schema.versions.last}, "
            f"not {version}"
        )
    compiler = _Compiler(version, version in schema.flexible, shapes)
    read, write = compiler.structure(schema.body)
    return Codec(schema.name, version, read, write)


@value_type
class _Compiler:
    version: int
    is_flexible: bool
    shapes: Mapping[str, type]

    def structure(self, body: Struct) -> tuple[Reader, Writer]:
        """Reader and writer of a structure: its plain fields, then its tagged fields."""
        plain = [f for f in body.fields if self._has(f) and not self._is_tagged(f)]
        tagged = [f for f in body.fields if self._has(f) and self._is_tagged(f)]
        absent = [f for f in body.fields if not self._has(f)]
        parts, tags = self._parts(plain), self._tags(tagged) if self.is_flexible else None
        guarded = {f.name: self.default(f) for f in absent if not f.ignorable}
        missing = {f.name: self.default(f) for f in (absent if tags else absent + tagged)}
        shape = self.shapes[body.name]
        return (
            make_struct_decoder(shape, parts, tags, missing),
            make_struct_encoder(shape, parts, tags, guarded, self.version),
        )

    def _has(self, field: Field) -> bool:
        return self.version in field.versions

    def _is_tagged(self, field: Field) -> bool:
        return field.tag is not None and self.version in field.tagged

    def _parts(self, plain: list[Field]) -> list[Run | Part]:
        parts: list[Run | Part] = []
        for is_fixed, group in groupby(plain, key=lambda field: field.type in FIXED):
            run = list(group)
            if is_fixed:
                parts.append(Run([f.name for f in run], [FIXED[f.type] for f in run]))
            else:
                parts += [Part(f.name, *self.field(f), self._kind(f)) for f in run]
        return parts

    def _kind(self, field: Field) -> str | None:
        """The kind of a field that may be inlined (records/codec/struct_codegen.py), or None."""
        if not self._is_compact(field):
            return None
        if field.type == "string":
            return TEXT
        return FIXED.get(field.element) if field.is_array and field.element != "uuid" else None

    def _is_compact(self, field: Field) -> bool:
        return self.is_flexible if field.flexible is None else self.version in field.flexible

    def _tags(self, tagged: list[Field]) -> Tags:
        known = [
            Tag(f.tag, self.default(f), Part(f.name, *self.field(f), self._kind(f)))
            for f in tagged
            if f.tag is not None
        ]
        return Tags(known, _tags_reader(known))

    def default(self, field: Field) -> object:
        """The value of a field that is not in the bytes."""
        if field.default is not OWN_DEFAULTS:
            return field.default
        assert field.struct is not None
        values = {inner.name: self.default(inner) for inner in field.struct.fields}
        return self.shapes[field.struct.name](**values)

    def field(self, field: Field) -> tuple[Reader, Writer]:
        """Reader and writer of one value of this field, including null if allowed."""
        is_flexible = self._is_compact(field)
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


def _tags_reader(tags: list[Tag]) -> ReadTags:
    known = {each.tag: (slot, each.part.read) for slot, each in enumerate(tags)}

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
