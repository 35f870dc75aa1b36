"""Arrow schema of the DataFrame, field by field as Spark expects it.

Spark requests the columns in separate processes, which need not import Arrow.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from quorate.pipeline.source.frame_schema import COLUMNS, SCALARS, TYPED, column_name
from quorate.records.codec.schema import schema_of
from quorate.records.json_format import field_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.records.codec.schema import Field, Struct

_ARROW: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}


def arrow_schema(columns: Iterable[str], record_types: Iterable[str]) -> pa.Schema:
    """The schema of the frame's batches."""
    plain = [pa.field(name, _ARROW[COLUMNS[name]]) for name in columns]
    typed = [
        pa.field(column_name(name), _struct_arrow(schema_of(TYPED[name]).body))
        for name in record_types
    ]
    return pa.schema([*plain, *typed])


@cache
def arrow_type(field: Field) -> pa.DataType:
    """The Arrow type of a field of a struct column."""
    single = _ARROW[SCALARS[field.element]] if field.struct is None else _struct_arrow(field.struct)
    return pa.list_(pa.field("element", single)) if field.is_array else single


def _struct_arrow(struct: Struct) -> pa.StructType:
    return pa.struct(
        [pa.field(field_name(field.name), arrow_type(field)) for field in struct.fields]
    )
