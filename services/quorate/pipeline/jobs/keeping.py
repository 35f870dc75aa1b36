"""A log read once for several tables: rows of some types, kept by Spark, and where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from quorate.pipeline.jobs.effective import effective
from quorate.pipeline.jobs.log_rows import in_log_time, valid
from quorate.pipeline.jobs.payloads import column_of, of_types

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame


def kept_rows(log: DataFrame, record_types: Collection[str]) -> DataFrame:
    """The valid rows of those types that took effect, as the log has them, read now and once.

    Two more, of no such type, have its first and its last timestamp: its span stays the same.
    """
    seen = Observation()
    at_ms = F.unix_millis("timestamp")
    timed = in_log_time(valid(log), log)
    observed = timed.observe(seen, F.min(at_ms).alias("first_ms"), F.max(at_ms).alias("last_ms"))
    told = observed.where(F.col("record_type").isin(*record_types))
    rows = effective(told, timed).select(log.columns).persist()
    rows.count()
    ends = rows.sparkSession.createDataFrame(
        [(seen.get["first_ms"],), (seen.get["last_ms"],)], "ms bigint"
    ).select(
        F.lit(0).cast("bigint").alias("offset"),
        F.timestamp_millis("ms").alias("timestamp"),
        F.lit("NoOpRecord").alias("record_type"),
        F.lit(True).alias("crc_valid"),
    )
    return rows.unionByName(ends, allowMissingColumns=True)


def kept(log: DataFrame, *records: type) -> DataFrame:
    """The valid rows of those types that took effect, with typed columns, read now and once.

    One more row without a type has the last timestamp of the whole log, which open intervals last
    to. What is kept goes to the disk where it is more than the memory takes.
    """
    seen = Observation()
    last_ms = F.max(F.unix_millis("timestamp")).alias("last_ms")
    timed = in_log_time(valid(log), log)
    # What an aborted transaction wrote last is where the log ends, too.
    rows = effective(timed.observe(seen, last_ms), timed)
    slim = of_types(rows, *records).select(
        "offset", "timestamp", "is_control", "record_type", *map(column_of, records)
    )
    slim = slim.persist()
    slim.count()
    end = slim.sparkSession.range(1).select(
        F.timestamp_millis(F.lit(seen.get["last_ms"])).alias("timestamp"),
        F.lit(False).alias("is_control"),
    )
    return slim.unionByName(end, allowMissingColumns=True)
