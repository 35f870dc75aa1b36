"""Record payloads as typed struct columns, with Kafka's field names.

A frame that was read with `recordTypes` has them already; for other frames the JSON in `payload` is
parsed with the record's own schema. They differ in one way: JSON omits a tagged field at its
default, a typed column has the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.source.frame_schema import column_name, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def column_of(record: type) -> str:
    """The column of a record type: PartitionRecord is in `partition_record`."""
    return column_name(record.__name__)


def struct_of(record: type) -> str:
    """The type of that column as DDL: the fields of the newest version."""
    _, ddl = spark_schema((), (record.__name__,)).split(" ", 1)
    return ddl


def of_types(frame: DataFrame, *records: type) -> DataFrame:
    """The rows of the types, each with its column, which is null in rows of other types."""
    names = [record.__name__ for record in records]
    return typed(frame.where(F.col("record_type").isin(names)), *records)


def typed(frame: DataFrame, *records: type) -> DataFrame:
    """Add the columns of the types to all rows."""
    parsed = {
        column_of(record): F.when(
            F.col("record_type") == record.__name__, F.from_json("payload", struct_of(record))
        )
        for record in records
        if column_of(record) not in frame.columns
    }
    return frame.withColumns(parsed) if parsed else frame
