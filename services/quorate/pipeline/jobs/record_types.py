"""How many records of each type a log holds, and how many bytes their keys and values take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.pipeline.jobs.log_rows import valid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD_TYPES_SCHEMA: Final = T.StructType(
    [
        T.StructField("record_type", T.StringType()),
        T.StructField("record_count", T.LongType()),
        T.StructField("size_bytes", T.LongType()),
    ]
)


def record_types(log: DataFrame) -> DataFrame:
    """One row a type (RECORD_TYPES_SCHEMA)."""
    size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    return (
        valid(log)
        .groupBy("record_type")
        .agg(F.count(F.lit(1)).alias("record_count"), F.sum(size).alias("size_bytes"))
        .select(*RECORD_TYPES_SCHEMA.names)
    )
