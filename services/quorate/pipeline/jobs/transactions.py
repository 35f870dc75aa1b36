"""Drops records of aborted and unfinished metadata transactions (KIP-868).

Records between BeginTransactionRecord and AbortTransactionRecord have no effect, and those of a
transaction that is still open at the end of a frame have none yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from quorate.records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BEGIN = BeginTransactionRecord.__name__
_END = EndTransactionRecord.__name__
_ABORT = AbortTransactionRecord.__name__


def is_marker() -> Column:
    """True for a record that begins or ends a transaction."""
    return F.col("record_type").isin(_BEGIN, _END, _ABORT)


def marker_count() -> Column:
    """The number of these records: if it is 0, all records are committed."""
    return F.count_if(is_marker())


def committed_only(frame: DataFrame, log: DataFrame | None = None) -> DataFrame:
    """Remove records that never took effect; control records and damage stay.

    `log` has the markers if the frame does not.
    """
    undone = F.broadcast(_undone(frame if log is None else log))
    is_inside = (
        (F.col("offset") >= F.col("begin_offset"))
        & (F.col("offset") <= F.col("end_offset"))
        & ~F.col("is_control")
    )
    return frame.join(undone, is_inside, "left_anti").select(*frame.columns)


def _undone(frame: DataFrame) -> DataFrame:
    """The ranges of offsets to leave out, both ends included."""
    # Markers are few, so one task can sort them all.
    following = Window.partitionBy(F.lit(0)).orderBy("offset").rowsBetween(1, 1)
    markers = frame.where(is_marker()).select(
        "offset",
        "record_type",
    )
    return (
        markers.withColumn("next_type", F.first("record_type").over(following))
        .withColumn("next_offset", F.first("offset").over(following))
        .where((F.col("record_type") == _BEGIN) & (F.coalesce("next_type", F.lit(_ABORT)) != _END))
        .select(
            F.col("offset").alias("begin_offset"),
            F.coalesce("next_offset", F.lit((1 << 63) - 1)).alias("end_offset"),
        )
    )
