"""Job `elections`: the leader of each epoch and the time without a leader before it.

An epoch starts with the LeaderChange that its leader writes (KIP-595) and ends with its last record
in the log. An epoch whose leader wrote nothing is not in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StructField,
    StructType,
    TimestampType,
)

from quorate.pipeline.jobs.log_rows import duration_ms, in_log_time, millis, span_of, valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

SCHEMAS: Final = {
    "elections": StructType(
        [
            StructField("epoch", IntegerType()),
            StructField("leader_id", IntegerType()),
            StructField("start_offset", LongType()),
            StructField("start", TimestampType()),
            StructField("end_offset", LongType()),
            StructField("end", TimestampType()),
            StructField("open", BooleanType()),
            StructField("duration_ms", LongType()),
            StructField("leaderless_ms", LongType()),
            StructField("record_count", LongType()),
            StructField("voters", ArrayType(IntegerType())),
            StructField("granting_voters", ArrayType(IntegerType())),
        ]
    )
}
_VOTER: Final = StructType([StructField("voterId", IntegerType())])
_LEADER_CHANGE: Final = StructType(
    [
        StructField("leaderId", IntegerType()),
        StructField("voters", ArrayType(_VOTER)),
        StructField("grantingVoters", ArrayType(_VOTER)),
    ]
)


def elections(log: DataFrame) -> DataFrame:
    """One row per epoch, in order.

    `leaderless_ms` is the time from the last record of the previous epoch to this one's
    LeaderChange; it is negative if the new leader's clock is behind. An epoch whose LeaderChange is
    before the frame has no `leader_id`, no `start` and no voters.
    """
    # Rows are many and in any order: use one aggregation, and windows over epochs only.
    rows = in_log_time(valid(log), log)
    change = F.when(
        F.col("record_type") == "LeaderChangeMessage",
        F.struct("offset", "timestamp", "payload"),
    )
    epochs = rows.groupBy("leader_epoch").agg(
        F.min(change).alias("change"),
        F.max(F.struct("offset", "timestamp")).alias("last"),
        F.count_if(~F.col("from_snapshot")).alias("record_count"),
    )
    in_order = Window.orderBy("leader_epoch").rowsBetween(Window.unboundedPreceding, -1)
    onwards = Window.orderBy("leader_epoch").rowsBetween(1, Window.unboundedFollowing)
    told = (
        epochs.withColumn("said", F.from_json("change.payload", _LEADER_CHANGE))
        .withColumn("previous_end", F.last("last.timestamp").over(in_order))
        .withColumn("open", F.count("*").over(onwards) == 0)
        .crossJoin(F.broadcast(span_of(log)))
        .withColumn("end", F.when(~F.col("open"), F.col("last.timestamp")))
    )
    return told.select(
        F.col("leader_epoch").alias("epoch"),
        F.col("said.leaderId").alias("leader_id"),
        F.col("change.offset").alias("start_offset"),
        F.col("change.timestamp").alias("start"),
        F.when(~F.col("open"), F.col("last.offset") + 1).alias("end_offset"),
        F.col("end"),
        F.col("open"),
        duration_ms(F.col("change.timestamp"), F.col("end")).alias("duration_ms"),
        (millis("change.timestamp") - millis("previous_end")).alias("leaderless_ms"),
        F.col("record_count"),
        F.sort_array("said.voters.voterId").alias("voters"),
        F.sort_array("said.grantingVoters.voterId").alias("granting_voters"),
    )


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job."""
    del values
    return {"elections": elections(log).orderBy("epoch")}
