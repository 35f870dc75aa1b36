"""Partitions through time: who led them, who was in sync, and when too few were.

A PartitionChangeRecord says only what changed; each state here is the PartitionRecord with all the
changes up to its offset worked in. All tables are made of these states, which cost more to find out
than what is made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.pipeline.jobs.intervals import INTERVAL_FIELDS, closed
from quorate.pipeline.jobs.keeping import kept
from quorate.pipeline.jobs.payloads import of_types
from quorate.pipeline.jobs.topics import topic_lives
from quorate.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, WindowSpec

_IDS: Final = T.ArrayType(T.IntegerType())
_KEY_FIELDS: Final = (
    T.StructField("topic", T.StringType()),
    T.StructField("topic_id", T.StringType()),
    T.StructField("partition", T.IntegerType()),
)

HISTORY_SCHEMA: Final = T.StructType(
    [
        *_KEY_FIELDS,
        *INTERVAL_FIELDS,
        T.StructField("leader", T.IntegerType()),
        T.StructField("leader_epoch", T.IntegerType()),
        T.StructField("replicas", _IDS),
        T.StructField("isr", _IDS),
        T.StructField("adding_replicas", _IDS),
        T.StructField("removing_replicas", _IDS),
        T.StructField("changed", T.ArrayType(T.StringType())),
    ]
)
UNDER_REPLICATED_SCHEMA: Final = T.StructType(
    [
        *_KEY_FIELDS,
        *INTERVAL_FIELDS,
        T.StructField("isr_size_min", T.IntegerType()),
        T.StructField("missing", _IDS),
        T.StructField("reassigning", T.BooleanType()),
    ]
)
OFFLINE_SCHEMA: Final = T.StructType(
    [
        *_KEY_FIELDS,
        *INTERVAL_FIELDS,
        T.StructField("last_leader", T.IntegerType()),
        T.StructField("next_leader", T.IntegerType()),
    ]
)
CHURN_SCHEMA: Final = T.StructType(
    [
        T.StructField("topic", T.StringType()),
        T.StructField("topic_id", T.StringType()),
        T.StructField("removed", T.BooleanType()),
        *(
            T.StructField(name, T.LongType())
            for name in (
                "partitions",
                "leader_changes",
                "unclean_elections",
                "isr_shrinks",
                "isr_expands",
                "reassignments",
            )
        ),
    ]
)

PARTITION_RECORDS: Final = (PartitionRecord, PartitionChangeRecord, TopicRecord, RemoveTopicRecord)

NO_LEADER: Final = -1
_NO_LEADER_CHANGE: Final = -2
_RECOVERING: Final = 1
_STATE: Final = ("leader", "replicas", "isr", "adding_replicas", "removing_replicas")


def partition_history(states: DataFrame, frame: DataFrame) -> DataFrame:
    """One row for each record about a partition: its state from there to the next (HISTORY_SCHEMA).

    `states` are the `partition_states` of the frame, here and below. `changed` names what differs
    from the state before, and is empty in the first row.
    """
    intervals = states.withColumn(
        "changed",
        F.filter(
            F.array(
                *(F.when(_differs(name), F.lit(name)) for name in ("leader", "isr", "replicas")),
                F.when(_differs("adding_replicas") | _differs("removing_replicas"), "reassignment"),
            ),
            lambda name: name.isNotNull(),
        ),
    )
    return closed(intervals, frame).select(*HISTORY_SCHEMA.names)


def under_replicated(states: DataFrame, frame: DataFrame) -> DataFrame:
    """When a partition had fewer replicas in sync than replicas (UNDER_REPLICATED_SCHEMA).

    `missing` is everybody who was out of sync at some time of it. `reassigning` tells whether it
    was being moved meanwhile: the new replicas count as missing then until they have caught up.
    """
    missing = F.array_except("replicas", "isr")
    is_moving = F.coalesce(
        (F.size("adding_replicas") + F.size("removing_replicas")) > 0, F.lit(False)
    )
    intervals = _merged(
        states.withColumn("missing", missing),
        F.size("isr") < F.size("replicas"),
        F.min(F.size("isr")).alias("isr_size_min"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("missing")))).alias("missing"),
        F.max(is_moving).alias("reassigning"),
    )
    return closed(intervals, frame).select(*UNDER_REPLICATED_SCHEMA.names)


def offline(states: DataFrame, frame: DataFrame) -> DataFrame:
    """When a partition had no leader, between which two (OFFLINE_SCHEMA).

    `last_leader` is null where it never had one, `next_leader` where it has none yet or is gone.
    """
    intervals = _merged(
        states,
        F.col("leader") == NO_LEADER,
        F.min_by("last_leader", "start_offset").alias("last_leader"),
        F.max_by("next_leader", "start_offset").alias("next_leader"),
    )
    return closed(intervals, frame).select(*OFFLINE_SCHEMA.names)


def churn(states: DataFrame) -> DataFrame:
    """How often the partitions of each topic changed, added up (CHURN_SCHEMA).

    A change of leader is one to or from nobody, too. An unclean election is one that Kafka marks by
    setting the partition to recover. A reassignment is counted where it begins.
    """
    was_moving, is_moving = _is_moving("previous_"), _is_moving("")
    is_moved_at_once = ~was_moving & ~is_moving & _differs("replicas")
    return (
        states.groupBy("topic_id")
        .agg(
            F.first("topic").alias("topic"),
            F.first("removed_offset").isNotNull().alias("removed"),
            F.countDistinct("partition").alias("partitions"),
            F.count_if(_differs("leader")).alias("leader_changes"),
            F.count_if(F.col("is_unclean")).alias("unclean_elections"),
            F.count_if(F.size(F.array_except("previous_isr", "isr")) > 0).alias("isr_shrinks"),
            F.count_if(F.size(F.array_except("isr", "previous_isr")) > 0).alias("isr_expands"),
            F.count_if(
                F.col("has_previous") & ((~was_moving & is_moving) | is_moved_at_once)
            ).alias("reassignments"),
        )
        .select(*CHURN_SCHEMA.names)
    )


def partition_states(frame: DataFrame) -> DataFrame:
    """Every state of every partition with the one before it, and when it ended.

    The frame is what `kept` makes of PARTITION_RECORDS: all of it took effect.
    """
    events = _events(frame)
    raises = F.coalesce(F.col("is_change") & F.col("leader").isNotNull(), F.lit(False))
    counted = events.withColumn("raises", F.sum(raises.cast("int")).over(_so_far())).withColumn(
        "epoch_base", F.col("full_epoch") - F.col("raises")
    )
    states = counted.select(
        "topic_id",
        "partition",
        "is_unclean",
        F.col("offset"),
        F.col("offset").alias("start_offset"),
        F.col("timestamp").alias("start"),
        (F.last("epoch_base", ignorenulls=True).over(_so_far()) + F.col("raises"))
        .cast("int")
        .alias("leader_epoch"),
        F.first("offset").over(_neighbour(1)).alias("next_offset"),
        F.first("timestamp").over(_neighbour(1)).alias("next_start"),
        *(F.last(name, ignorenulls=True).over(_so_far()).alias(name) for name in _STATE),
    )
    neighbours = states.select(
        "*",
        F.first("offset").over(_neighbour(-1)).isNotNull().alias("has_previous"),
        F.first("leader").over(_neighbour(1)).alias("leader_after"),
        *(F.first(name).over(_neighbour(-1)).alias(f"previous_{name}") for name in _STATE),
    )
    return neighbours.join(topic_lives(frame), "topic_id", "left").select(
        "*",
        F.coalesce("next_offset", "removed_offset").alias("end_offset"),
        F.coalesce("next_start", "removed").alias("end"),
        F.col("previous_leader").alias("last_leader"),
        F.col("leader_after").alias("next_leader"),
    )


def _events(frame: DataFrame) -> DataFrame:
    """What each record says of its partition; null is what it does not say."""
    full, change = F.col("partition_record"), F.col("partition_change_record")
    leader = F.when(change["leader"] != _NO_LEADER_CHANGE, change["leader"])
    return of_types(frame, PartitionRecord, PartitionChangeRecord).select(
        "offset",
        "timestamp",
        F.coalesce(full["topicId"], change["topicId"]).alias("topic_id"),
        F.coalesce(full["partitionId"], change["partitionId"]).alias("partition"),
        change.isNotNull().alias("is_change"),
        full["leaderEpoch"].alias("full_epoch"),
        F.coalesce(full["leader"], leader).alias("leader"),
        F.coalesce(full["replicas"], change["replicas"]).alias("replicas"),
        F.coalesce(full["isr"], change["isr"]).alias("isr"),
        F.coalesce(full["addingReplicas"], change["addingReplicas"]).alias("adding_replicas"),
        F.coalesce(full["removingReplicas"], change["removingReplicas"]).alias("removing_replicas"),
        (F.coalesce(change["leaderRecoveryState"], F.lit(-1)) == _RECOVERING).alias("is_unclean"),
    )


def _merged(states: DataFrame, condition: Column, *measures: Column) -> DataFrame:
    """Neighbouring states that fulfil the condition as one interval each."""
    holds = states.withColumn("holds", F.coalesce(condition, F.lit(False)))
    begins = holds.withColumn(
        "begins", ~F.coalesce(F.first("holds").over(_neighbour(-1)), F.lit(False)) & F.col("holds")
    )
    numbered = begins.withColumn("number", F.sum(F.col("begins").cast("int")).over(_so_far()))
    return (
        numbered.where("holds")
        .groupBy("topic_id", "partition", "number")
        .agg(
            F.first("topic").alias("topic"),
            F.min_by("start", "start_offset").alias("start"),
            F.max_by("end_offset", "start_offset").alias("end_offset"),
            F.max_by("end", "start_offset").alias("end"),
            *measures,
            F.min("start_offset").alias("begin_offset"),
        )
        .withColumnRenamed("begin_offset", "start_offset")
    )


def _so_far() -> WindowSpec:
    """The states of a partition up to this one. A window needs a session, so it is no constant."""
    return _by_partition().rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _neighbour(step: int) -> WindowSpec:
    """The state before (-1) or after (1)."""
    return _by_partition().rowsBetween(step, step)


def _by_partition() -> WindowSpec:
    return Window.partitionBy("topic_id", "partition").orderBy("offset")


def _differs(name: str) -> Column:
    """Whether it is another than in the state before; not so in the first state of all."""
    now, before = F.col(name), F.col(f"previous_{name}")
    if name != "leader":
        now, before = F.array_sort(now), F.array_sort(before)
    return F.col("has_previous") & ~now.eqNullSafe(before)


def _is_moving(prefix: str) -> Column:
    adding, removing = F.size(f"{prefix}adding_replicas"), F.size(f"{prefix}removing_replicas")
    return F.coalesce(adding > 0, F.lit(False)) | F.coalesce(removing > 0, F.lit(False))


SCHEMAS: Final = {
    "history": HISTORY_SCHEMA,
    "under_replicated": UNDER_REPLICATED_SCHEMA,
    "offline": OFFLINE_SCHEMA,
    "churn": CHURN_SCHEMA,
}


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job: of intervals the first first, of topics the restless first."""
    del values
    rows = kept(log, *PARTITION_RECORDS)
    states = partition_states(rows).persist()
    in_time = ("start_offset", "topic", "partition")
    changes = F.col("leader_changes") + F.col("isr_shrinks") + F.col("isr_expands")
    return {
        "history": partition_history(states, rows).orderBy(*in_time),
        "under_replicated": under_replicated(states, rows).orderBy(*in_time),
        "offline": offline(states, rows).orderBy(*in_time),
        "churn": churn(states).orderBy(changes.desc(), "topic", "topic_id"),
    }
