"""The frame that the source gives: its columns, in Spark's words and in Arrow's.

The columns are the same whatever is read. Each record type that is asked for adds one: a struct in
snake case of the type's name, its fields named as Kafka names them, unsigned numbers as the next
wider type, uuids as Kafka's base64.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from quorate.records.ids import format_uuid
from quorate.records.json_form import field_name
from quorate.records.metadata import RECORD_TYPES
from quorate.records.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.records.schema import Field, Struct

COLUMNS: Final[Mapping[str, tuple[str, pa.DataType]]] = {
    "offset": ("bigint", pa.int64()),
    "leader_epoch": ("int", pa.int32()),
    # In a session whose spark.sql.timestampType is TIMESTAMP_NTZ the plain word means that.
    "timestamp": ("timestamp_ltz", pa.timestamp("us", "UTC")),
    "is_control": ("boolean", pa.bool_()),
    "record_type": ("string", pa.string()),
    "record_version": ("smallint", pa.int16()),
    "key": ("binary", pa.binary()),
    "value": ("binary", pa.binary()),
    "payload": ("string", pa.string()),
    "batch_base_offset": ("bigint", pa.int64()),
    "segment": ("string", pa.string()),
    "crc_valid": ("boolean", pa.bool_()),
    "source_node": ("int", pa.int32()),
}
# Python knows the years 1 to 9999, in the zone of the machine that shows them: that has a day.
TIME_MIN_MS: Final = round(datetime(1, 1, 2, tzinfo=UTC).timestamp() * 1000)
TIME_MAX_MS: Final = round(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1000) - 1
TYPED: Final[Mapping[str, type]] = {
    record_type.__name__: record_type for record_type in RECORD_TYPES.values()
}
_SCALARS: Final[Mapping[str, tuple[str, pa.DataType]]] = {
    "bool": ("boolean", pa.bool_()),
    "int8": ("tinyint", pa.int8()),
    "int16": ("smallint", pa.int16()),
    "uint16": ("int", pa.int32()),
    "int32": ("int", pa.int32()),
    "uint32": ("bigint", pa.int64()),
    "int64": ("bigint", pa.int64()),
    "float64": ("double", pa.float64()),
    "uuid": ("string", pa.string()),
    "string": ("string", pa.string()),
    "bytes": ("binary", pa.binary()),
}
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def column_name(record_type: str) -> str:
    """PartitionRecord becomes partition_record."""
    return _CAPITAL.sub("_", record_type).lower()


def spark_schema(columns: Iterable[str], record_types: Iterable[str]) -> str:
    """The frame's schema as DDL."""
    plain = [f"{name} {COLUMNS[name][0]}" for name in columns]
    typed = [
        f"{column_name(name)} {_struct_ddl(schema_of(TYPED[name]).body)}" for name in record_types
    ]
    return ", ".join([*plain, *typed])


def arrow_schema(columns: Iterable[str], record_types: Iterable[str]) -> pa.Schema:
    """The same for Arrow batches, field by field what Spark expects for it."""
    plain = [pa.field(name, COLUMNS[name][1]) for name in columns]
    typed = [pa.field(column_name(name), struct_type(name)) for name in record_types]
    return pa.schema([*plain, *typed])


def struct_type(record_type: str) -> pa.StructType:
    """The Arrow type of a record type's column."""
    return _struct_arrow(schema_of(TYPED[record_type]).body)


def _struct_ddl(struct: Struct) -> str:
    inner = ", ".join(f"`{field_name(field.name)}`: {_ddl(field)}" for field in struct.fields)
    return f"struct<{inner}>"


def _ddl(field: Field) -> str:
    single = _SCALARS[field.element][0] if field.struct is None else _struct_ddl(field.struct)
    return f"array<{single}>" if field.is_array else single


def _struct_arrow(struct: Struct) -> pa.StructType:
    return pa.struct(
        [pa.field(field_name(field.name), arrow_type(field)) for field in struct.fields]
    )


@cache
def arrow_type(field: Field) -> pa.DataType:
    """The Arrow type of a field of a struct column."""
    single = _SCALARS[field.element][1] if field.struct is None else _struct_arrow(field.struct)
    return pa.list_(pa.field("element", single)) if field.is_array else single


def plain_value(value: object, struct: Struct) -> dict[str, object]:
    """A decoded record, or a structure in one, as a row of its column."""
    return {
        field_name(field.name): _plain(getattr(value, field.name), field) for field in struct.fields
    }


def _plain(item: object, field: Field) -> object:
    if isinstance(item, tuple):
        return [_plain_single(part, field) for part in item]
    return _plain_single(item, field)


def _plain_single(item: object, field: Field) -> object:
    if item is None:
        return None
    if field.struct is not None:
        return plain_value(item, field.struct)
    if field.element == "uuid" and isinstance(item, bytes):
        return format_uuid(item)
    return item
