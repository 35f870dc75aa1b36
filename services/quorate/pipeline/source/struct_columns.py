"""Builds Arrow struct columns from decoded columns."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from quorate.pipeline.source.arrow_schema import arrow_type
from quorate.records.columnar.reader import Constant, Elements, Lists, Numbers, Octets, Structs
from quorate.records.ids import UUID_BYTES
from quorate.records.json_format import field_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quorate.records.codec.schema import Field, Struct
    from quorate.records.columnar.reader import Column

_UUID_CHARACTERS: Final = 22
# Base64 is computed for all uuids together, so each is padded to complete groups of three bytes.
_PADDED_BYTES: Final = 18
_PADDED_CHARACTERS: Final = 24
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def struct_array(columns: Structs, struct: Struct, count: int) -> pa.StructArray:
    """The rows of a struct column."""
    arrays = [_array(columns.fields[field.name], field, count) for field in struct.fields]
    fields = [pa.field(field_name(field.name), arrow_type(field)) for field in struct.fields]
    if not fields:
        # Without arrays, a struct array would have no length.
        return pa.Array.from_buffers(pa.struct([]), count, [None])
    return pa.StructArray.from_arrays(arrays, fields=fields)


def uuid_strings(values: NDArray[np.uint8]) -> pa.StringArray:
    """Format uuids, rows of sixteen bytes, as Kafka does."""
    padded = np.zeros((len(values), _PADDED_BYTES), np.uint8)
    padded[:, :UUID_BYTES] = values
    text = binascii.b2a_base64(padded.tobytes(), newline=False).translate(_URL_SAFE)
    characters = np.frombuffer(text, np.uint8).reshape(-1, _PADDED_CHARACTERS)
    return octet_strings(np.ascontiguousarray(characters[:, :_UUID_CHARACTERS]), pa.string())


def _array(column: Column, field: Field, count: int) -> pa.Array:
    """Convert a column of `count` rows to an array of the field's type."""
    wanted = arrow_type(field)
    match column:
        case Constant(value=None):
            return pa.nulls(count, wanted)
        case Constant(value=()):
            empty = pa.array([], wanted.value_type)
            return _list_array(np.zeros(count + 1, np.int32), empty, wanted)
        case Constant(value=value):
            return pa.repeat(pa.scalar(_plain_constant(value, field), wanted), count)
        case Lists(count=each, elements=elements):
            offsets = np.arange(count + 1, dtype=np.int32) * np.int32(each)
            return _list_array(offsets, _single(elements, field, count * each), wanted)
        case Elements(columns=columns):
            each = len(columns)
            offsets = np.arange(count + 1, dtype=np.int32) * np.int32(each)
            if not each:
                return _list_array(offsets, pa.array([], wanted.value_type), wanted)
            parts = pa.concat_arrays([_single(part, field, count) for part in columns])
            by_row = np.arange(count * each).reshape(each, count).T.reshape(-1)
            return _list_array(offsets, parts.take(pa.array(by_row)), wanted)
        case _:
            return _single(column, field, count)


def _single(column: Column, field: Field, count: int) -> pa.Array:
    wanted = arrow_type(field)
    if field.is_array:
        wanted = wanted.value_type
    match column:
        case Numbers(values=values):
            return pa.array(values, wanted)
        case Octets(values=values) if field.element == "uuid":
            return uuid_strings(values)
        case Octets(values=values):
            return octet_strings(values, wanted)
        case Structs():
            assert field.struct is not None
            return struct_array(column, field.struct, count)
        case _:
            raise TypeError(f"{field.name}: {type(column).__name__} is no single value")


def octet_strings(values: NDArray[np.uint8], wanted: pa.DataType) -> pa.Array:
    """Convert rows of the same number of bytes to strings or binaries."""
    count, size = values.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(size)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(wanted, count, buffers)


def _list_array(offsets: NDArray[np.int32], elements: pa.Array, wanted: pa.DataType) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(wanted, len(offsets) - 1, buffers, children=[elements])


def _plain_constant(value: Any, field: Field) -> object:  # noqa: ANN401 - a field's default
    if field.element == "uuid":
        return uuid_strings(np.frombuffer(value, np.uint8).reshape(1, -1))[0].as_py()
    return value
