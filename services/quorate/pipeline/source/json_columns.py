"""Builds the JSON payload column from decoded columns, equal to encoding each record separately.

Records of one layout share names, brackets and commas, so all texts are joined from these and from
columns of values.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.source.struct_columns import octet_strings, uuid_strings
from quorate.records.columnar.reader import Constant, Elements, Lists, Numbers, Octets, Structs
from quorate.records.json_format import field_name, single_to_json, value_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from quorate.records.codec.schema import Field, Struct
    from quorate.records.columnar.reader import Column

    # The same text for every row, or a column with a text for each row.
    Part: TypeAlias = str | pa.StringArray

_FIRST_PRINTED: Final = 0x20
_ESCAPED: Final = (ord('"'), ord("\\"))


def compact(value: object) -> str:
    """Encode a value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def json_strings(columns: Structs, struct: Struct, version: int, count: int) -> pa.StringArray:
    """The JSON of `count` records of one type and version; null for exceptions.

    Exceptions are records that contain the default of a tagged field, which JSON omits.
    """
    writer = _JsonWriter(version, count)
    texts = _concatenated(writer.struct(columns, struct), count)
    if not writer.spells_default.any():
        return texts
    return pc.if_else(pa.array(writer.spells_default), pa.scalar(None, pa.string()), texts)


class _JsonWriter:
    """Writes rows of one version from left to right."""

    def __init__(self, version: int, count: int) -> None:
        self.version = version
        self.spells_default = np.zeros(count, np.bool_)

    def struct(self, columns: Structs, struct: Struct) -> Iterator[Part]:
        mark = "{"
        for field in struct.fields:
            if self.version not in field.versions:
                continue
            column = columns.fields[field.name]
            if field.tag is not None and self.version in field.tagged:
                if isinstance(column, Constant) and column.value == field.default:
                    continue
                self.spells_default |= _is_default(column, field)
            yield f'{mark}"{field_name(field.name)}":'
            yield from self.column(column, field)
            mark = ","
        yield "{}" if mark == "{" else "}"

    def column(self, column: Column, field: Field) -> Iterator[Part]:
        match column:
            case Lists(count=count, elements=elements):
                parts = (_nth(elements, at, count) for at in range(count))
                yield from self.listed(parts, field)
            case Elements(columns=columns):
                yield from self.listed(columns, field)
            case _:
                yield from self.single(column, field)

    def listed(self, columns: Iterable[Column], field: Field) -> Iterator[Part]:
        yield "["
        for at, column in enumerate(columns):
            if at:
                yield ","
            yield from self.single(column, field)
        yield "]"

    def single(self, column: Column, field: Field) -> Iterator[Part]:
        match column:
            case Constant(value=value):
                yield compact(value_to_json(value, field, self.version))
            case Structs():
                assert field.struct is not None
                yield from self.struct(column, field.struct)
            case Numbers(values=values) if field.element == "float64":
                yield pa.array(map(compact, values.tolist()), pa.string())
            case Numbers(values=values):
                yield pa.array(values).cast(pa.string())
            case Octets(values=values) if field.element == "string" and _is_printed(values):
                yield '"'
                yield octet_strings(values, pa.string())
                yield '"'
            case Octets(values=values) if field.element == "uuid":
                yield '"'
                yield uuid_strings(values)
                yield '"'
            case Octets(values=values):
                yield pa.array((self.text(row.tobytes(), field) for row in values), pa.string())
            case _:
                raise TypeError(f"{field.name}: {type(column).__name__} is no single value")

    def text(self, octets: bytes, field: Field) -> str:
        value = octets.decode() if field.element == "string" else octets
        return compact(single_to_json(value, field, self.version))


def _nth(elements: Numbers | Octets, at: int, count: int) -> Column:
    """The elements at one index of the lists."""
    if isinstance(elements, Numbers):
        return Numbers(elements.values[at::count])
    return Octets(elements.values[at::count])


def _is_printed(octets: NDArray[np.uint8]) -> bool:
    """True if these strings need no escapes in JSON."""
    found = octets < _FIRST_PRINTED
    for octet in _ESCAPED:
        found |= octets == octet
    return not found.any()


def _is_default(column: Column, field: Field) -> Any:  # noqa: ANN401 - flags, or one for all
    """The rows that may have the field's default; all others certainly do not."""
    default = field.default
    match column:
        case Numbers(values=values):
            return values == default
        case Octets(values=values) if isinstance(default, str | bytes):
            wanted = default.encode() if isinstance(default, str) else default
            if len(wanted) != values.shape[1]:
                return False
            return (values == np.frombuffer(wanted, np.uint8)).all(axis=1)
        case Lists(count=0) | Elements(columns=()):
            return default == ()
        case Structs():
            return True
        case _:
            return False


def _concatenated(parts: Iterable[Part], count: int) -> pa.StringArray:
    """Join the parts of each row."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    (first, *rest) = joined
    if isinstance(first, str) and not rest:
        return pa.repeat(pa.scalar(first, pa.string()), count)
    return pc.binary_join_element_wise(*joined, "")
