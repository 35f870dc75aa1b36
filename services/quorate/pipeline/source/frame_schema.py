"""Spark schema of the DataFrame.

The columns do not depend on the log. Each requested record type adds a struct column with the
type's name in snake case. Its fields have Kafka's names, unsigned numbers the next wider type, and
uuids Kafka's base64.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from quorate.records.codec.schema import schema_of
from quorate.records.ids import format_uuid
from quorate.records.json_format import field_name
from quorate.records.metadata import RECORD_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from quorate.records.codec.schema import Field, Struct

COLUMNS: Final[Mapping[str, str]] = {
    "offset": "bigint",
    "leader_epoch": "int",
    # In a session whose spark.sql.timestampType is TIMESTAMP_NTZ, `timestamp` alone means that.
    "timestamp": "timestamp_ltz",
    "is_control": "boolean",
    "record_type": "string",
    "record_version": "smallint",
    "key": "binary",
    "value": "binary",
    "payload": "string",
    "batch_base_offset": "bigint",
    "segment": "string",
    "crc_valid": "boolean",
    "source_node": "int",
}
# Python supports the years 1 to 9999 in the local time zone, which may differ by up to a day.
TIME_MIN_MS: Final = round(datetime(1, 1, 2, tzinfo=UTC).timestamp() * 1000)
TIME_MAX_MS: Final = round(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1000) - 1
TYPED: Final[Mapping[str, type]] = {
    record_type.__name__: record_type for record_type in RECORD_TYPES.values()
}
SCALARS: Final[Mapping[str, str]] = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "uint16": "int",
    "int32": "int",
    "uint32": "bigint",
    "int64": "bigint",
    "float64": "double",
    "uuid": "string",
    "string": "string",
    "bytes": "binary",
}
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def column_name(record_type: str) -> str:
    """The column of a record type: partition_record for PartitionRecord."""
    return _CAPITAL.sub("_", record_type).lower()


def spark_schema(columns: Iterable[str], record_types: Iterable[str]) -> str:
    """The frame's schema as DDL."""
    plain = [f"{name} {COLUMNS[name]}" for name in columns]
    typed = [
        f"{column_name(name)} {_struct_ddl(schema_of(TYPED[name]).body)}" for name in record_types
    ]
    return ", ".join([*plain, *typed])


def _struct_ddl(struct: Struct) -> str:
    inner = ", ".join(f"`{field_name(field.name)}`: {_ddl(field)}" for field in struct.fields)
    return f"struct<{inner}>"


def _ddl(field: Field) -> str:
    single = SCALARS[field.element] if field.struct is None else _struct_ddl(field.struct)
    return f"array<{single}>" if field.is_array else single


def plain_value(value: object, struct: Struct) -> dict[str, object]:
    """A decoded record, or a structure in one, as a row of its struct column."""
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
