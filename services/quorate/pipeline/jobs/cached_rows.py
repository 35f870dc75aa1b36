"""Reads the log once and caches the rows that several tables need, and the end of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import Observation
from pyspark.sql import functions as F

from quorate.pipeline.jobs.log_rows import covered_ms, in_covered_time, is_snapshot, valid
from quorate.pipeline.jobs.observed_metrics import observed_values
from quorate.pipeline.jobs.transactions import committed_only, is_marker, marker_count
from quorate.pipeline.jobs.typed_payloads import column_of, typed
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark.sql import DataFrame


@value_type
class CachedRows:
    """Cached rows, and the time span of the log that they come from; None for an empty log."""

    rows: DataFrame
    first_ms: int | None
    last_ms: int | None


def at_hand(log: DataFrame) -> DataFrame:
    """Cache the rows of a small log in one partition, so that queries need no shuffle."""
    return log.coalesce(1).persist()


def cache_rows(log: DataFrame, record_types: Collection[str]) -> DataFrame:
    """Cache the valid committed records of those types with the source's columns.

    The log is read now, and once. Two more rows, of type NoOpRecord, have the first and the last
    timestamp of the log, so that its time span stays the same.
    """
    read = kept_as(log, record_types, lambda rows: rows)
    ends = read.rows.sparkSession.createDataFrame(
        [(read.first_ms,), (read.last_ms,)], "ms bigint"
    ).select(
        F.lit(0).cast("bigint").alias("offset"),
        F.timestamp_millis("ms").alias("timestamp"),
        F.lit("NoOpRecord").alias("record_type"),
        F.lit(True).alias("crc_valid"),
    )
    return read.rows.unionByName(ends, allowMissingColumns=True)


def cache_typed_rows(log: DataFrame, *records: type) -> DataFrame:
    """Cache the valid committed records of those types with typed columns.

    The log is read now, and once. One more row without a type has the last timestamp of the
    complete log, up to which open intervals are counted.
    """
    columns = ("offset", "timestamp", "is_control", "record_type", *map(column_of, records))
    read = kept_as(
        log,
        [record.__name__ for record in records],
        lambda rows: typed(rows, *records).select(*columns, "from_snapshot"),
    )
    end = read.rows.sparkSession.createDataFrame([(read.last_ms,)], "ms bigint").select(
        F.timestamp_millis("ms").alias("timestamp"), F.lit(False).alias("is_control")
    )
    return read.rows.unionByName(end, allowMissingColumns=True)


def kept_as(
    log: DataFrame,
    record_types: Collection[str],
    shaped: Callable[[DataFrame], DataFrame],
    level: StorageLevel = StorageLevel.MEMORY_AND_DISK,
) -> CachedRows:
    """Cache the result of `shaped` for the valid committed records of those types.

    `shaped` also gets rows that begin or end transactions. It must keep every row, and at least the
    columns offset, timestamp, is_control, record_type and from_snapshot. The log is read now, and
    once: the same read determines everything that would otherwise need another one.
    """
    seen = Observation()
    at_ms = F.unix_millis("timestamp")
    of_log, of_snapshot = F.when(~is_snapshot(), at_ms), F.when(is_snapshot(), at_ms)
    observed = valid(log).observe(
        seen,
        F.min(of_log).alias("first_ms"),
        F.max(of_log).alias("last_ms"),
        F.min(of_snapshot).alias("snapshot_first_ms"),
        F.max(of_snapshot).alias("snapshot_last_ms"),
        covered_ms().alias("covered_ms"),
        marker_count().alias("markers"),
    )
    is_of_type = F.col("record_type").isin(*record_types)
    chosen = observed.where(is_of_type | is_marker())
    told = shaped(chosen.withColumn("from_snapshot", is_snapshot())).persist(level)
    told.count()
    found = observed_values(seen)
    covered = found.get("covered_ms")
    rows = in_covered_time(told, F.lit(covered).cast("bigint"))
    if found.get("markers"):
        rows = committed_only(rows)
    firsts = (found.get("first_ms"), found.get("snapshot_first_ms") if covered is None else covered)
    lasts = (found.get("last_ms"), found.get("snapshot_last_ms") if covered is None else covered)
    return CachedRows(
        rows.where(is_of_type).drop("from_snapshot"),
        min((ms for ms in firsts if ms is not None), default=None),
        max((ms for ms in lasts if ms is not None), default=None),
    )
