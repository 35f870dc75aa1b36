"""Shared row helpers: validity, record types, timestamps of snapshot rows.

Rows of a snapshot come before the log's, all at the offset before its end. They were written later
than their changes, so they get the time of the last record that the snapshot covers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from quorate.storage.layout import CHECKPOINT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame

_SNAPSHOT_HEADER: Final = StructType([StructField("lastContainedLogTimestamp", LongType())])


def is_snapshot() -> Column:
    """True for a row from a snapshot."""
    return F.coalesce(F.col("segment").endswith(CHECKPOINT_SUFFIX), F.lit(False))


def valid(log: DataFrame) -> DataFrame:
    """The records of the log: no damage, and not the bootstrap checkpoint.

    The bootstrap checkpoint has no times, and the first leader copies its records into the log.
    """
    return log.where("crc_valid and record_type is not null and offset >= 0")


def damaged(log: DataFrame) -> DataFrame:
    """The rows for bytes that fail verification or cannot be read."""
    return log.where(is_damaged())


def is_damaged() -> Column:
    """True for a row of damaged or unreadable bytes."""
    return ~F.col("crc_valid") | F.col("record_type").isNull()


def rows_of(log: DataFrame, record_types: Collection[str]) -> DataFrame:
    """The rows of some types: all columns, `from_snapshot`, and timestamps in log time."""
    rows = valid(log).where(F.col("record_type").isin(*record_types))
    return in_log_time(rows, log)


def in_log_time(rows: DataFrame, log: DataFrame) -> DataFrame:
    """Add `from_snapshot`, and give rows of a snapshot the time of the last record it covers."""
    covered = valid(log).select(covered_ms().alias("covered_ms"))
    joined = rows.crossJoin(F.broadcast(covered)).withColumn("from_snapshot", is_snapshot())
    return in_covered_time(joined, F.col("covered_ms")).drop("covered_ms")


def covered_ms() -> Column:
    """The time of the last record that the log's snapshot covers; null without a snapshot."""
    is_header = F.col("record_type") == "SnapshotHeaderRecord"
    header = F.from_json(F.when(is_header, F.col("payload")), _SNAPSHOT_HEADER)
    return F.max(header["lastContainedLogTimestamp"])


def in_covered_time(rows: DataFrame, covered: Column) -> DataFrame:
    """Give rows `from_snapshot` the time `covered`, unless it is null."""
    covered_at = F.coalesce(F.timestamp_millis(covered), F.col("timestamp"))
    at = F.when(F.col("from_snapshot"), covered_at).otherwise(F.col("timestamp"))
    return rows.withColumn("timestamp", at)


def span_of(log: DataFrame) -> DataFrame:
    """One row, `first_timestamp` and `last_timestamp`, the bounds of open intervals.

    Both are null if the frame is empty.
    """
    return in_log_time(valid(log), log).select(
        F.min("timestamp").alias("first_timestamp"), F.max("timestamp").alias("last_timestamp")
    )


def millis(moment: str | Column) -> Column:
    """Milliseconds since 1970 of a timestamp."""
    return F.unix_millis(moment)


def duration_ms(start: Column, end: Column) -> Column:
    """Milliseconds from `start` to `end`; the frame's span replaces an unknown one.

    The columns of `span_of` must be present.
    """
    begun = F.coalesce(start, F.col("first_timestamp"))
    ended = F.coalesce(end, F.col("last_timestamp"))
    return F.unix_millis(ended) - F.unix_millis(begun)
