"""Job `compare`: whether the voters' logs agree: lag, damage, divergence.

Two logs that are equal up to an offset and differ at it have diverged there. That is normal while
one of them has a tail that was never committed: the log is truncated to the next leader's. If both
have a record of the same epoch at that offset or later, Raft's log matching is broken: one of them
lost or changed committed records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from quorate.pipeline.jobs.damage_report import damage_message, first_damage
from quorate.pipeline.jobs.log_rows import damaged, is_snapshot, valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

SCHEMAS: Final = {
    "logs": StructType(
        [
            StructField("node_id", IntegerType()),
            StructField("start_offset", LongType()),
            StructField("end_offset", LongType()),
            StructField("last_epoch", IntegerType()),
            StructField("lag", LongType()),
            StructField("missing_count", LongType()),
            StructField("damage_count", LongType()),
            StructField("first_damage", StringType()),
        ]
    ),
    "divergence": StructType(
        [
            StructField("node_id", IntegerType()),
            StructField("other_id", IntegerType()),
            StructField("first_offset", LongType()),
            StructField("epoch", IntegerType()),
            StructField("other_epoch", IntegerType()),
            StructField("common_count", LongType()),
            StructField("differing_count", LongType()),
            StructField("breaks_log_matching", BooleanType()),
        ]
    ),
    "epochs": StructType(
        [
            StructField("epoch", IntegerType()),
            StructField("node_id", IntegerType()),
            StructField("start_offset", LongType()),
            StructField("end_offset", LongType()),
            StructField("agrees", BooleanType()),
        ]
    ),
}


def logs(log: DataFrame) -> DataFrame:
    """One row per node: the span of its log, and its lag in offsets behind the longest log.

    `missing_count` is the number of offsets within the span without a record; `first_damage` has
    the file, the byte and the error.
    """
    of_log = valid(log).where(~is_snapshot())
    spans = of_log.groupBy(F.col("source_node").alias("node_id")).agg(
        F.min("offset").alias("start_offset"),
        (F.max("offset") + 1).alias("end_offset"),
        F.max("leader_epoch").alias("last_epoch"),
        F.count("*").alias("record_count"),
    )
    damages = (
        damaged(log)
        .groupBy(F.col("source_node").alias("damaged_id"))
        .agg(F.count("*").alias("damage_count"), first_damage().alias("first"))
    )
    longest = spans.agg(F.max("end_offset").alias("longest_end"))
    return (
        spans.join(
            F.broadcast(damages), F.col("node_id").eqNullSafe(F.col("damaged_id")), "full_outer"
        )
        .crossJoin(F.broadcast(longest))
        .select(
            F.coalesce("node_id", "damaged_id").alias("node_id"),
            "start_offset",
            "end_offset",
            "last_epoch",
            (F.col("longest_end") - F.col("end_offset")).alias("lag"),
            (F.col("end_offset") - F.col("start_offset") - F.col("record_count")).alias(
                "missing_count"
            ),
            F.coalesce("damage_count", F.lit(0)).cast("bigint").alias("damage_count"),
            damage_message("first").alias("first_damage"),
        )
    )


def divergence(log: DataFrame) -> DataFrame:
    """One row per pair of nodes: the first offset at which both have a record and they differ.

    `first_offset` and the epochs there are null if the two agree wherever both have records.
    `breaks_log_matching` means that both have the same epoch there or later, which Raft forbids.
    """
    content = F.xxhash64("leader_epoch", "is_control", "timestamp", "key", "value")
    held = (
        valid(log)
        .where(~is_snapshot())
        .groupBy("offset")
        .agg(
            F.array_sort(
                F.collect_list(
                    F.struct(
                        F.col("source_node").alias("node"),
                        F.col("leader_epoch").alias("epoch"),
                        content.alias("content"),
                    )
                )
            ).alias("held")
        )
    )
    pairs = F.expr(
        "flatten(transform(held, a -> transform(filter(held, b -> a.node < b.node),"
        " b -> struct(a, b))))"
    )
    differs = F.col("pair.a.content") != F.col("pair.b.content")
    is_one_epoch = F.col("pair.a.epoch") == F.col("pair.b.epoch")
    each = held.select("offset", F.explode(pairs).alias("pair"))
    at = F.struct(
        "offset", F.col("pair.a.epoch").alias("epoch"), F.col("pair.b.epoch").alias("other")
    )
    return (
        each.groupBy(F.col("pair.a.node").alias("node_id"), F.col("pair.b.node").alias("other_id"))
        .agg(
            F.min(F.when(differs, at)).alias("first"),
            F.count("*").alias("common_count"),
            F.count_if(differs).alias("differing_count"),
            F.max(F.when(is_one_epoch, F.col("offset"))).alias("shared"),
        )
        .select(
            "node_id",
            "other_id",
            F.col("first.offset").alias("first_offset"),
            F.col("first.epoch").alias("epoch"),
            F.col("first.other").alias("other_epoch"),
            "common_count",
            "differing_count",
            F.coalesce(F.col("shared") >= F.col("first.offset"), F.lit(False)).alias(
                "breaks_log_matching"
            ),
        )
    )


def epochs(log: DataFrame) -> DataFrame:
    """One row per epoch and node: the offsets of the epoch in that log.

    `agrees` means that all logs with the beginning of the epoch have it at the same offset.
    """
    of_log = valid(log).where(~is_snapshot())
    begins = F.when(F.col("record_type") == "LeaderChangeMessage", F.col("offset"))
    each = of_log.groupBy("leader_epoch", "source_node").agg(
        F.min("offset").alias("start_offset"),
        (F.max("offset") + 1).alias("end_offset"),
        F.min(begins).alias("begins"),
    )
    agreed = each.groupBy(F.col("leader_epoch").alias("agreed_epoch")).agg(
        (F.count_distinct("begins") <= 1).alias("agrees")
    )
    return each.join(F.broadcast(agreed), F.col("leader_epoch") == F.col("agreed_epoch")).select(
        F.col("leader_epoch").alias("epoch"),
        F.col("source_node").alias("node_id"),
        "start_offset",
        "end_offset",
        "agrees",
    )


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job."""
    del values
    return {
        "logs": logs(log).orderBy("node_id"),
        "divergence": divergence(log).orderBy("node_id", "other_id"),
        "epochs": epochs(log).orderBy("epoch", "node_id"),
    }
