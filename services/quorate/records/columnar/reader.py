"""Runs of records of one type, version and size as columns: numpy arrays instead of objects.

Records of one size nearly always have one layout: the same tags, and equal lengths of all strings
and arrays. Then each field is at the same position in all of them and is read in one go. If a byte
that determines the layout differs, the run is divided by it, until each part has one layout. The
encoding is that of records/codec, for flexible versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from quorate.records.codec.schema import OWN_DEFAULTS, SchemaError, schema_of
from quorate.records.ids import UUID_BYTES
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from quorate.records.codec.schema import Field, Schema, Struct

    Rows: TypeAlias = NDArray[np.uint8]

T = TypeVar("T", bound=np.generic)
DTYPES: Final[Mapping[str, str]] = {
    "bool": "?",
    "int8": ">i1",
    "int16": ">i2",
    "uint16": ">u2",
    "int32": ">i4",
    "uint32": ">u4",
    "int64": ">i8",
    "float64": ">f8",
}
_UVARINT_BYTES_MAX: Final = 5
_CONTINUATION_BITS: Final = 0xC0
_CONTINUATION: Final = 0x80


@value_type
class Constant:
    """The same value in every row: the default of an absent field or tag, or null."""

    value: object


@value_type
class Numbers:
    """One number or boolean per row."""

    values: NDArray[Any]


@value_type
class Octets:
    """The same number of bytes per row: strings in UTF-8, bytes, uuids. Shape (rows, bytes)."""

    values: Rows


@value_type
class Lists:
    """The same number of elements per row; `elements` has those of the first row first."""

    count: int
    elements: Numbers | Octets


@value_type
class Elements:
    """The same number of elements per row, with a column for each position in the list."""

    columns: tuple[Column, ...]


@value_type
class Structs:
    """One structure per row: its fields by name."""

    fields: Mapping[str, Column]


Column: TypeAlias = Constant | Numbers | Octets | Lists | Elements | Structs


class _ShapeMismatchError(Exception):
    """The byte in this column determines the layout and is not the same in all rows."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


def decode_columns(
    record_type: type, version: int, rows: Rows
) -> Iterator[tuple[NDArray[np.intp], Structs]]:
    """Yield the columns of messages of one type, version and size: `rows` has their bytes.

    Each pair is for one layout: the indexes of its rows, and their columns. Unknown tagged fields
    are skipped. Raises SchemaError if any message violates its schema.
    """
    schema = schema_of(record_type)
    if version not in schema.versions or version not in schema.flexible:
        raise SchemaError(f"{schema.name}: version {version} has no columns")
    waiting = [np.arange(len(rows))] if len(rows) else []
    while waiting:
        part = waiting.pop()
        chosen = rows if len(part) == len(rows) else rows[part]
        reader = _Reader(schema, version, chosen)
        try:
            yield part, reader.message()
        except _ShapeMismatchError as unequal:
            column = chosen[:, unequal.column]
            waiting += [part[column == value] for value in distinct(column)]


class _Reader:
    """Reads the rows of one layout from left to right."""

    def __init__(self, schema: Schema, version: int, rows: Rows) -> None:
        self.schema = schema
        self.version = version
        self.rows = rows
        self.at = 0

    def message(self) -> Structs:
        body = self.struct(self.schema.body)
        left = self.rows.shape[1] - self.at
        if left:
            raise SchemaError(f"{self.schema.name}: {left} bytes are left behind its end")
        return body

    def struct(self, body: Struct) -> Structs:
        fields: dict[str, Column] = {}
        tagged: dict[int, Field] = {}
        for field in body.fields:
            if self.version in field.versions and field.tag is None:
                try:
                    fields[field.name] = self.field(field)
                except SchemaError as error:
                    raise SchemaError(f"{field.name}: {error}") from error
            else:
                fields[field.name] = default_of(field)
                if self.version in field.versions and field.tag is not None:
                    tagged[field.tag] = field
        for _ in range(self.uvarint()):
            tag, size = self.uvarint(), self.uvarint()
            end = self.at + size
            if tag in tagged:
                fields[tagged[tag].name] = self.field(tagged[tag])
                if self.at != end:
                    raise SchemaError(f"tag {tag} does not take its {size} bytes")
            else:
                self.take(size)
        return Structs(fields)

    def field(self, field: Field) -> Column:
        if not field.is_array:
            return self.single(field, may_be_null=self.version in field.nullable)
        count = self.length(may_be_null=self.version in field.nullable)
        if count is None:
            return Constant(None)
        if field.element == "uuid":
            return Lists(count, Octets(self.take(count * UUID_BYTES).reshape(-1, UUID_BYTES)))
        if field.element in DTYPES:
            return Lists(count, Numbers(self.numbers(field.element, count)))
        if count > self.rows.shape[1] - self.at:
            raise SchemaError(f"{count} elements in {self.rows.shape[1] - self.at} bytes")
        return Elements(tuple(self.single(field, may_be_null=False) for _ in range(count)))

    def single(self, field: Field, *, may_be_null: bool) -> Column:
        match field.element:
            case "string" | "bytes":
                size = self.length(may_be_null=may_be_null)
                if size is None:
                    return Constant(None)
                octets = self.take(size)
                if field.element == "string":
                    _check_utf8(octets)
                return Octets(octets)
            case "uuid":
                return Octets(self.take(UUID_BYTES))
            case element if element in DTYPES:
                return Numbers(self.numbers(element, 1))
            case _:
                assert field.struct is not None
                if may_be_null and self.same_byte() >= _CONTINUATION:
                    return Constant(None)
                return self.struct(field.struct)

    def numbers(self, element: str, count: int) -> NDArray[Any]:
        dtype = np.dtype(DTYPES[element])
        octets = self.take(count * dtype.itemsize)
        if element == "bool":
            is_true: NDArray[Any] = octets.reshape(-1) != 0
            return is_true
        values: NDArray[Any] = octets.reshape(-1).view(dtype)
        return values.astype(dtype.newbyteorder("="))

    def take(self, size: int) -> Rows:
        """The next `size` bytes of every row, as a contiguous array."""
        end = self.at + size
        if end > self.rows.shape[1]:
            raise SchemaError(f"{size} bytes at {self.at} of {self.rows.shape[1]}")
        taken = np.ascontiguousarray(self.rows[:, self.at : end])
        self.at = end
        return taken

    def length(self, *, may_be_null: bool) -> int | None:
        length = self.uvarint() - 1
        if length >= 0:
            return length
        if not may_be_null:
            raise SchemaError("may not be null")
        return None

    def uvarint(self) -> int:
        value = 0
        for index in range(_UVARINT_BYTES_MAX):
            byte = self.same_byte()
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                break
        else:
            raise SchemaError("a varint is longer than 32 bits")
        if value >> 32:
            raise SchemaError("a varint is longer than 32 bits")
        return value

    def same_byte(self) -> int:
        """The next byte, which determines the layout. Raises _ShapeMismatchError if rows differ."""
        if self.at >= self.rows.shape[1]:
            raise SchemaError(f"cut off at {self.at}")
        column = self.rows[:, self.at]
        first = int(column[0])
        if (column != first).any():
            raise _ShapeMismatchError(self.at)
        self.at += 1
        return first


def distinct(values: NDArray[T]) -> NDArray[T]:
    """The distinct values in ascending order.

    `np.unique` imports numpy's masked arrays at its first call, which takes 8 ms.
    """
    if not len(values) or (values == values[0]).all():
        return values[:1]
    ordered = np.sort(values)
    found: NDArray[T] = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return found


def default_of(field: Field) -> Column:
    """The column of a field that is not in the bytes."""
    if field.default is not OWN_DEFAULTS:
        return Constant(field.default)
    assert field.struct is not None
    return Structs({inner.name: default_of(inner) for inner in field.struct.fields})


def _check_utf8(octets: Rows) -> None:
    """Raise SchemaError unless each row is complete UTF-8."""
    data = octets.tobytes()
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise SchemaError(str(error)) from error
    if octets.shape[1] and (octets[:, 0] & _CONTINUATION_BITS == _CONTINUATION).any():
        raise SchemaError("a string begins in the middle of a character")
