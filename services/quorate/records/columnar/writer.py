"""Encodes columns as messages of one layout: the reverse of records/columnar/reader.py.

All rows get the same tags and the same lengths, so that each field is at the same position in all
of them and is written in one go. A caller with rows of several layouts divides them first. The
encoding is that of records/codec, for flexible versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quorate.records.codec.schema import SchemaError, schema_of
from quorate.records.codec.varint import encode_uvarint
from quorate.records.columnar.reader import (
    DTYPES,
    Constant,
    Elements,
    Lists,
    Numbers,
    Octets,
    Structs,
    default_of,
)
from quorate.records.ids import UUID_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorate.records.codec.schema import Field, Struct
    from quorate.records.columnar.reader import Column, Rows

_NULL: Final = b"\0"
_STRUCTURE_THERE: Final = b"\x01"
_STRUCTURE_NULL: Final = b"\xff"


def encode_columns(
    record_type: type, version: int, columns: Structs, count: int, *, head: bytes = b""
) -> Rows:
    """Encode `count` messages: one row each, with `head` before it.

    Fields without a column have their defaults. Raises SchemaError for values that the version
    cannot encode, and if only some rows would have a tag.
    """
    schema = schema_of(record_type)
    if version not in schema.versions or version not in schema.flexible:
        raise SchemaError(f"{schema.name}: version {version} has no columns")
    writer = _RowWriter(version, count)
    writer.constant(head)
    writer.struct(schema.body, columns)
    return writer.rows()


def values_of(rows: Rows) -> list[bytes]:
    """Convert each row to a bytes object."""
    data, size = rows.tobytes(), rows.shape[1]
    return [data[at : at + size] for at in range(0, len(data), size)] if size else [b""] * len(rows)


class _RowWriter:
    """Writes the rows of one layout from left to right."""

    def __init__(self, version: int, count: int) -> None:
        self.version = version
        self.count = count
        self.size = 0
        self._parts: list[bytes | Rows] = []

    def constant(self, content: bytes) -> None:
        """Append the same bytes to every row."""
        if content:
            self._parts.append(content)
            self.size += len(content)

    def octets(self, content: Rows) -> None:
        """Append bytes of shape (rows, size)."""
        self._parts.append(content)
        self.size += content.shape[1]

    def rows(self) -> Rows:
        """All bytes written so far, of shape (rows, size)."""
        rows = np.empty((self.count, self.size), np.uint8)
        self.put_into(rows)
        return rows

    def put_into(self, rows: Rows) -> None:
        at = 0
        for part in self._parts:
            octets = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
            size = octets.shape[-1]
            rows[:, at : at + size] = octets
            at += size

    def struct(self, body: Struct, columns: Structs) -> None:
        tagged: list[tuple[int, Field, Column]] = []
        for field in body.fields:
            column = columns.fields.get(field.name, default_of(field))
            if self.version not in field.versions:
                if not field.ignorable and not self._is_default(field, column):
                    raise SchemaError(
                        f"{field.name} is set, but version {self.version} has no such field"
                    )
            elif field.tag is None:
                self.field(field, column)
            elif not self._is_default(field, column):
                tagged.append((field.tag, field, column))
        self.constant(encode_uvarint(len(tagged)))
        for tag, field, column in sorted(tagged, key=lambda each: each[0]):
            inner = _RowWriter(self.version, self.count)
            inner.field(field, column)
            self.constant(encode_uvarint(tag) + encode_uvarint(inner.size))
            self._parts += inner._parts
            self.size += inner.size

    def _is_default(self, field: Field, column: Column) -> bool:
        """True if all rows have the default. Raises SchemaError if only some have it."""
        is_default = np.broadcast_to(_equals(column, default_of(field)), (self.count,))
        if is_default.all():
            return True
        if is_default.any():
            raise SchemaError(f"{field.name} is set in some rows and not in others")
        return False

    def field(self, field: Field, column: Column) -> None:
        """Append one field: null, a single value or an array."""
        may_be_null = self.version in field.nullable
        if isinstance(column, Constant) and column.value is None:
            if not may_be_null:
                raise SchemaError(f"{field.name}: may not be null")
            is_structure = field.struct is not None and not field.is_array
            self.constant(_STRUCTURE_NULL if is_structure else _NULL)
        elif not field.is_array:
            self._single(field, column, may_be_null=may_be_null)
        elif isinstance(column, Elements):
            self.constant(encode_uvarint(len(column.columns) + 1))
            for each in column.columns:
                self._single(field, each, may_be_null=False)
        else:
            found = _list_of(field, column, self.count)
            self.constant(encode_uvarint(found.count + 1))
            self.octets(_octets(field, found.elements).reshape(self.count, -1))

    def _single(self, field: Field, column: Column, *, may_be_null: bool) -> None:
        match column:
            case Structs():
                assert field.struct is not None
                if may_be_null:
                    self.constant(_STRUCTURE_THERE)
                self.struct(field.struct, column)
            case Constant(value=value):
                self._single(field, _repeated(field, value, self.count), may_be_null=False)
            case _:
                octets = _octets(field, column)
                if field.element in ("string", "bytes"):
                    self.constant(encode_uvarint(octets.shape[1] + 1))
                self.octets(octets)


def _equals(column: Column, default: Column) -> NDArray[np.bool_]:
    """A mask of the rows with the default; of shape () if it is the same for all rows."""
    match column, default:
        case Constant(value=value), Constant(value=other):
            return np.array(value == other)
        case Numbers(values=values), Constant(value=other) if other is not None:
            return np.asarray(values == other)
        case Octets(values=octets), Constant(value=bytes() | str() as other):
            expected = np.frombuffer(other.encode() if isinstance(other, str) else other, np.uint8)
            if octets.shape[1] != len(expected):
                return np.array(False)  # noqa: FBT003 - an array of one
            return np.asarray((octets == expected).all(axis=1))
        case Lists(count=0) | Elements(columns=()), Constant(value=()):
            return np.array(True)  # noqa: FBT003 - an array of one
        case Structs(fields=fields), Structs(fields=others):
            equal = [_equals(fields[name], others[name]) for name in others]
            return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*equal)))
        case _:
            return np.array(False)  # noqa: FBT003 - an array of one


def _list_of(field: Field, column: Column, count: int) -> Lists:
    """The elements of each row; a constant list is repeated."""
    if isinstance(column, Lists):
        return column
    assert isinstance(column, Constant)
    values: tuple[Any, ...] = tuple(column.value) * count  # type: ignore[arg-type]
    if field.element == "uuid":
        octets = np.frombuffer(b"".join(values), np.uint8).reshape(-1, UUID_BYTES)
        return Lists(len(values) // count, Octets(octets))
    return Lists(len(values) // count, Numbers(np.array(values, DTYPES[field.element])))


def _repeated(field: Field, value: object, count: int) -> Numbers | Octets:
    if isinstance(value, str | bytes):
        content = value.encode() if isinstance(value, str) else value
        octets = np.frombuffer(content, np.uint8)
        return Octets(np.broadcast_to(octets, (count, len(octets))))
    return Numbers(np.full(count, value, DTYPES[field.element]))


def _octets(field: Field, column: Column) -> Rows:
    """The bytes of the elements, of shape (elements, size of one)."""
    match column:
        case Octets(values=octets):
            if field.element == "uuid" and octets.shape[1] != UUID_BYTES:
                raise SchemaError(f"{field.name}: a uuid has {UUID_BYTES} bytes")
            return octets
        case Numbers(values=values):
            dtype = np.dtype(DTYPES[field.element])
            if dtype.kind in "iu" and not np.can_cast(values.dtype, dtype):
                _check_range(field, values, dtype)
            converted = np.ascontiguousarray(values.astype(dtype, copy=False))
            return converted.view(np.uint8).reshape(-1, dtype.itemsize)
        case _:
            raise SchemaError(f"{field.name}: no numbers and no bytes")


def _check_range(field: Field, values: NDArray[Any], dtype: np.dtype[Any]) -> None:
    bounds = np.iinfo(dtype)
    if values.size and not bounds.min <= int(values.min()) <= int(values.max()) <= bounds.max:
        raise SchemaError(f"{field.name}: {int(values.min())} to {int(values.max())}")
