"""What the jobs share about rows of a log: which to believe, when they were, how they are read.

Rows of a snapshot come before the log's, all at the offset before its end; when they were written
says nothing of when they came to be, so they count as of the last record that the snapshot covers.
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
    """Whether a row was read from a snapshot."""
    return F.coalesce(F.col("segment").endswith(CHECKPOINT_SUFFIX), F.lit(False))


def valid(log: DataFrame) -> DataFrame:
    """The records of the log: no damage, and not the checkpoint that a quorum was founded with.

    That one says when nothing was, and the first leader writes into the log what is in it.
    """
    return log.where("crc_valid and record_type is not null and offset >= 0")


def damaged(log: DataFrame) -> DataFrame:
    """The rows that stand for bytes that do not check or cannot be read."""
    return log.where("not crc_valid or record_type is null")


def rows_of(log: DataFrame, record_types: Collection[str]) -> DataFrame:
    """The rows of some types: all columns, `from_snapshot`, and timestamps of the log's time."""
    rows = valid(log).where(F.col("record_type").isin(*record_types))
    return in_log_time(rows, log)


def in_log_time(rows: DataFrame, log: DataFrame) -> DataFrame:
    """Adds `from_snapshot`, and gives rows of a snapshot the time of the last record it covers."""
    covered = (
        valid(log)
        .where("record_type = 'SnapshotHeaderRecord'")
        .select(F.from_json("payload", _SNAPSHOT_HEADER).alias("header"))
        .select(F.max("header.lastContainedLogTimestamp").alias("covered_ms"))
    )
    covered_at = F.coalesce(F.timestamp_millis("covered_ms"), F.col("timestamp"))
    return (
        rows.crossJoin(F.broadcast(covered))
        .withColumn("from_snapshot", is_snapshot())
        .withColumn("timestamp", F.when(is_snapshot(), covered_at).otherwise(F.col("timestamp")))
        .drop("covered_ms")
    )


def span_of(log: DataFrame) -> DataFrame:
    """One row, `first_timestamp` and `last_timestamp`: what durations of open intervals count to.

    Both are null where the frame has no row.
    """
    return in_log_time(valid(log), log).select(
        F.min("timestamp").alias("first_timestamp"), F.max("timestamp").alias("last_timestamp")
    )


def millis(moment: str | Column) -> Column:
    """Milliseconds since 1970 of a timestamp."""
    return F.unix_millis(moment)


def duration_ms(start: Column, end: Column) -> Column:
    """From `start` to `end`; where either is not known, from or to the end of the frame's span.

    The columns of `span_of` have to be there.
    """
    begun = F.coalesce(start, F.col("first_timestamp"))
    ended = F.coalesce(end, F.col("last_timestamp"))
    return F.unix_millis(ended) - F.unix_millis(begun)
