"""Intervals with open ends, and counts of intervals over time.

An interval that continues at the end of a frame is open: its `end` and `end_offset` are null, and
its `duration_ms` counts to the last timestamp of the frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.pipeline.jobs.log_rows import duration_ms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UP_TO_NOW: Final = (Window.unboundedPreceding, Window.currentRow)
INTERVAL_FIELDS: Final = (
    T.StructField("start_offset", T.LongType()),
    T.StructField("start", T.TimestampType()),
    T.StructField("end_offset", T.LongType()),
    T.StructField("end", T.TimestampType()),
    T.StructField("open", T.BooleanType(), nullable=False),
    T.StructField("duration_ms", T.LongType()),
)


def closed(intervals: DataFrame, frame: DataFrame) -> DataFrame:
    """Add `open` and `duration_ms` to intervals with start_offset, start, end_offset and end.

    `frame` is the complete frame that contains them.
    """
    span = frame.agg(
        F.min("timestamp").alias("first_timestamp"), F.max("timestamp").alias("last_timestamp")
    )
    return intervals.crossJoin(F.broadcast(span)).select(
        *intervals.columns,
        F.col("end_offset").isNull().alias("open"),
        duration_ms(F.col("start"), F.col("end")).alias("duration_ms"),
    )


def counts_over_time(intervals: DataFrame, bins: int) -> DataFrame:
    """The number of intervals over time, as rows of at and count; at most two rows per bin.

    A bin has its largest count with the time when it was reached, and the count at its end.
    """
    changes = (
        intervals.select(F.col("start").alias("at"), F.lit(1).alias("step"))
        .unionAll(intervals.where(~F.col("open")).select("end", F.lit(-1)))
        .groupBy("at")
        .agg(F.sum("step").alias("step"))
    )
    span = changes.agg(F.min("at").alias("first"), F.max("at").alias("last"))
    since_ms = F.unix_millis("at") - F.unix_millis("first")
    whole_ms = F.unix_millis("last") - F.unix_millis("first") + 1
    binned = changes.crossJoin(F.broadcast(span)).select(
        "at", "step", F.floor(since_ms * bins / whole_ms).alias("bin")
    )
    # Each bin is counted separately, then the count at the end of the previous bins is added.
    in_bin = Window.partitionBy("bin").orderBy("at").rowsBetween(*_UP_TO_NOW)
    of_bins = (
        binned.withColumn("count", F.sum("step").over(in_bin))
        .groupBy("bin")
        .agg(
            # Among equal counts, the one reached first.
            F.max(F.struct("count", (-F.unix_millis("at")).alias("minus_ms"))).alias("highest"),
            F.max("at").alias("until"),
            F.sum("step").alias("left"),
        )
    )
    so_far = Window.orderBy("bin").rowsBetween(*_UP_TO_NOW)
    told = of_bins.withColumn("all_left", F.sum("left").over(so_far))
    points = F.inline(
        F.array(
            F.struct(
                F.timestamp_millis(-F.col("highest.minus_ms")).alias("at"),
                (F.col("all_left") - F.col("left") + F.col("highest.count")).alias("count"),
                F.lit(0).alias("nr"),
            ),
            F.struct(
                F.col("until").alias("at"), F.col("all_left").alias("count"), F.lit(1).alias("nr")
            ),
        )
    )
    return told.select(points).orderBy("at", "nr").select("at", "count")
