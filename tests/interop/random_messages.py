"""Messages with random values, for any schema in any of its versions; the same ones each time."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import TYPE_CHECKING, Any

from quorate.records.codec.schema import OWN_DEFAULTS, Field, Schema, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.records.codec.compiler import Codec

INTEGERS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}


@dataclasses.dataclass(frozen=True, slots=True)
class Filler:
    """Draws values that a version can carry; fields that it lacks keep their defaults.

    A tame filler keeps to what kio's stricter types admit: known error codes, times at hand.
    """

    random: Random
    codec: Codec[Any]
    shapes: Mapping[str, type]
    is_flexible: bool
    is_tame: bool = False

    def struct(self, struct: Struct) -> object:
        values = {field.name: self.field(field) for field in struct.fields}
        if self.is_flexible and not self.is_tame and self.random.random() < 0.3:
            unknown = sorted({self.random.randrange(10_000, 20_000) for _ in range(2)})
            values["tagged"] = tuple((tag, self.random.randbytes(3)) for tag in unknown)
        return self.shapes[struct.name](**values)

    def field(self, field: Field) -> object:
        version = self.codec.version
        if version not in field.versions or (field.tag is not None and self.random.random() < 0.3):
            return self.default(field)
        if version in field.nullable and self.random.random() < 0.3:
            return None
        if field.is_array:
            return tuple(self.single(field) for _ in range(self.random.choice((0, 1, 2, 20))))
        return self.single(field)

    def default(self, field: Field) -> object:
        if field.default is not OWN_DEFAULTS:
            return field.default
        assert field.struct is not None
        inner = {each.name: self.default(each) for each in field.struct.fields}
        return self.shapes[field.struct.name](**inner)

    def single(self, field: Field) -> object:
        random = self.random
        match field.element:
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.gauss(0, 1e6)
            case "uuid":
                return random.randbytes(16)
            case "string":
                return "".join(
                    random.choice("aZ09.-é😀") for _ in range(random.choice((0, 3, 130)))
                )
            case "bytes" | "records":
                return random.randbytes(random.choice((0, 3, 130)))
            case kind if kind in INTEGERS:
                return self.integer(kind, field.name)
            case _:
                assert field.struct is not None
                return self.struct(field.struct)

    def integer(self, kind: str, name: str) -> int:
        if self.is_tame:
            return 0 if name.endswith("error_code") else self.random.randrange(1, 100)
        value = self.random.getrandbits(INTEGERS[kind])
        return value if kind.startswith("u") else value - (1 << INTEGERS[kind] - 1)


def message_for(
    schema: Schema, shapes: Mapping[str, type], codec: Codec[Any], *, is_tame: bool = False
) -> object:
    random = Random(f"{schema.name} {codec.version}")
    filler = Filler(random, codec, shapes, codec.version in schema.flexible, is_tame)
    return filler.struct(schema.body)
