"""Job `partitions`: leaders and ISRs over time, under-replicated and offline intervals, churn.

A PartitionChangeRecord has only the changed fields; each state here is the PartitionRecord with all
changes up to its offset applied. Spark reads and sorts the records, and numpy processes them in
order (`partition_states`, `partition_tables`): Spark windows would hold all states before each
state as lists.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema as from_arrow

from quorate.pipeline.jobs import partition_tables
from quorate.pipeline.jobs.cached_rows import kept_as
from quorate.pipeline.jobs.intervals import INTERVAL_FIELDS
from quorate.pipeline.jobs.partition_states import TOPIC
from quorate.pipeline.jobs.typed_payloads import typed
from quorate.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from quorate.pipeline.jobs.cached_rows import CachedRows

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
UNCLEAN_SCHEMA: Final = T.StructType(
    [
        *_KEY_FIELDS,
        T.StructField("offset", T.LongType()),
        T.StructField("timestamp", T.TimestampType()),
        T.StructField("epoch", T.IntegerType()),
        T.StructField("leader", T.IntegerType()),
        T.StructField("isr_before", _IDS),
        T.StructField("isr_after", _IDS),
        T.StructField("by_recovery_state", T.BooleanType()),
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

_TOPIC_COLUMNS: Final = ("topic", "topic_id", "removed")
# The number of tasks for the partitions of one topic. Each gets a copy of the topic's own records.
_GROUPS: Final = 8
_NO_LEADER_CHANGE: Final = -2
_RECOVERING: Final = 1
_LISTS: Final = {
    "replicas": "replicas",
    "isr": "isr",
    "adding_replicas": "addingReplicas",
    "removing_replicas": "removingReplicas",
}
_ELIGIBLE: Final = "eligibleLeaderReplicas"


def partition_events(log: DataFrame) -> CachedRows:
    """The records of partitions and topics, as `states_of` needs them.

    A partition of the frame has all records of its Kafka partitions and of their topics, sorted.
    They are cached on disk, because they are processed once and in order.
    """
    read = kept_as(
        log,
        [record.__name__ for record in PARTITION_RECORDS],
        lambda rows: (
            _events(typed(rows, *PARTITION_RECORDS))
            .withColumn("group", F.explode(_groups()))
            .repartition("topic_id", "group")
            .sortWithinPartitions("topic_id", "partition", "offset")
            .drop("group")
        ),
        StorageLevel.DISK_ONLY,
    )
    removed = F.when(F.col("removed_offset").isNotNull(), F.col("timestamp"))
    rows = read.rows.withColumn("removed", removed).drop("record_type", "is_control")
    return replace(read, rows=rows)


def _events(rows: DataFrame) -> DataFrame:
    """The fields that each record sets; the others are null."""
    full, change = F.col("partition_record"), F.col("partition_change_record")
    topic, removal = F.col("topic_record"), F.col("remove_topic_record")
    leader = F.when(change["leader"] != _NO_LEADER_CHANGE, change["leader"])
    recovery = F.coalesce(change["leaderRecoveryState"], F.lit(-1))
    of_new = F.when(full.isNotNull(), F.array().cast(_IDS))
    topic_ids = [record["topicId"] for record in (change, full, topic, removal)]
    return rows.select(
        "record_type",
        "is_control",
        "from_snapshot",
        "offset",
        "timestamp",
        F.coalesce(*topic_ids).alias("topic_id"),
        F.coalesce(change["partitionId"], full["partitionId"], F.lit(TOPIC)).alias("partition"),
        topic["name"].alias("topic"),
        F.when(removal.isNotNull(), F.col("offset")).alias("removed_offset"),
        full["leaderEpoch"].alias("leader_epoch"),
        (change.isNotNull() & leader.isNotNull()).alias("raises_epoch"),
        F.coalesce(full["leader"], leader).alias("leader"),
        *(F.coalesce(full[name], change[name]).alias(column) for column, name in _LISTS.items()),
        F.coalesce(full[_ELIGIBLE], change[_ELIGIBLE], of_new).alias("eligible_replicas"),
        (recovery == _RECOVERING).alias("is_recovering"),
    )


def _groups() -> Column:
    """The groups of partitions that get a record: all of them for a record of the topic."""
    is_of_topic = F.col("topic_id").isNotNull() & (F.col("partition") == TOPIC)
    every = F.sequence(F.lit(0), F.lit(_GROUPS - 1))
    return F.when(is_of_topic, every).otherwise(F.array(F.col("partition") % _GROUPS))


def partition_history(events: CachedRows) -> DataFrame:
    """One row for each record about a partition: its state up to the next record (HISTORY_SCHEMA).

    `events` are the result of `partition_events`. `changed` names the differences from the previous
    state, and is empty in the first row.
    """
    found = events.rows.mapInArrow(partition_tables.history, from_arrow(partition_tables.HISTORY))
    return _closed(found, events).select(*HISTORY_SCHEMA.names)


def partition_summary(events: CachedRows) -> DataFrame:
    """Cache the rows of the four tables below, which one pass over the events computes.

    A topic has a row of churn for each part of the events that has partitions of it.
    """
    schema = from_arrow(partition_tables.SUMMARY)
    return _closed(events.rows.mapInArrow(partition_tables.summary, schema), events).persist()


def under_replicated(summary: DataFrame) -> DataFrame:
    """The intervals in which a partition had too few in-sync replicas (UNDER_REPLICATED_SCHEMA).

    `missing` has all replicas that were out of sync during the interval. `reassigning` is True if
    the partition was being moved: the new replicas count as missing until they have caught up.
    """
    return _of_table(summary, "under_replicated")


def offline(summary: DataFrame) -> DataFrame:
    """The intervals without a leader, and the leaders before and after (OFFLINE_SCHEMA).

    `last_leader` is null if the partition had none before, `next_leader` if it has none yet or was
    deleted.
    """
    return _of_table(summary, "offline")


def unclean(summary: DataFrame) -> DataFrame:
    """Elections of leaders that may lack records (UNCLEAN_SCHEMA).

    `by_recovery_state` is True if the record sets the partition to recovering, which is how Kafka
    marks these elections since metadata.version 3.2. Others are derived from the ISR. `isr_before`
    is null if the log does not have it.
    """
    return _of_table(summary, "unclean")


def churn(summary: DataFrame) -> DataFrame:
    """The number of changes per topic, summed over its partitions (CHURN_SCHEMA).

    A change of leader to or from none counts as well. A reassignment is counted at its start.
    """
    counts = (name for name in CHURN_SCHEMA.names if name not in _TOPIC_COLUMNS)
    of_parts = _of_table(summary, "churn").groupBy(*_TOPIC_COLUMNS)
    return of_parts.agg(*(F.sum(name).alias(name) for name in counts))


def _of_table(summary: DataFrame, name: str) -> DataFrame:
    return summary.where(F.col("table") == name).select(*SCHEMAS[name].names)


def _closed(intervals: DataFrame, events: CachedRows) -> DataFrame:
    """Add `open` and `duration_ms` to intervals, all of which have a start."""
    until = F.coalesce(F.unix_millis("end"), F.lit(events.last_ms).cast("bigint"))
    return intervals.withColumns(
        {
            "open": F.col("end_offset").isNull(),
            "duration_ms": until - F.unix_millis("start"),
        }
    )


SCHEMAS: Final = {
    "history": HISTORY_SCHEMA,
    "under_replicated": UNDER_REPLICATED_SCHEMA,
    "offline": OFFLINE_SCHEMA,
    "unclean": UNCLEAN_SCHEMA,
    "churn": CHURN_SCHEMA,
}


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job: intervals by time, topics by their number of changes."""
    del values
    events = partition_events(log)
    summary = partition_summary(events)
    in_time = ("start_offset", "topic", "partition")
    changes = F.col("leader_changes") + F.col("isr_shrinks") + F.col("isr_expands")
    return {
        "history": partition_history(events).orderBy(*in_time),
        "under_replicated": under_replicated(summary).orderBy(*in_time),
        "offline": offline(summary).orderBy(*in_time),
        "unclean": unclean(summary).orderBy("offset", "topic", "partition"),
        "churn": churn(summary).orderBy(changes.desc(), "topic", "topic_id"),
    }
