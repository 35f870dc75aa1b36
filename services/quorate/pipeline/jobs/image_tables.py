"""Job `image`: the metadata at one position in the log.

The tables of topics, partitions, brokers, configs and ACLs all derive from `kept_entries`: the log
is read once.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.controller.configs.messages import ResourceType
from quorate.pipeline.jobs.acls import ACL_FIELDS
from quorate.pipeline.jobs.configs import RESOURCE_TYPES, withheld
from quorate.pipeline.jobs.enum_names import named
from quorate.pipeline.jobs.image_entries import (
    ACL,
    BROKER,
    CLEARED,
    CONFIG,
    PARTITION,
    SELDOM_TYPE,
    TOPIC,
    kept_entries,
    up_to,
)
from quorate.pipeline.jobs.log_position import format_position
from quorate.pipeline.jobs.log_rows import in_log_time, valid
from quorate.pipeline.jobs.observed_metrics import observed_values
from quorate.pipeline.jobs.registry import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

_IDS: Final = T.ArrayType(T.IntegerType())
_NAMES: Final = T.ArrayType(T.StringType())

TOPICS_SCHEMA: Final = T.StructType(
    [
        T.StructField("topic", T.StringType()),
        T.StructField("topic_id", T.StringType()),
        T.StructField("partitions", T.LongType()),
    ]
)
PARTITIONS_SCHEMA: Final = T.StructType(
    [
        T.StructField("topic", T.StringType()),
        T.StructField("topic_id", T.StringType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField("leader", T.IntegerType()),
        T.StructField("leader_epoch", T.IntegerType()),
        T.StructField("partition_epoch", T.IntegerType()),
        T.StructField("replicas", _IDS),
        T.StructField("isr", _IDS),
        T.StructField("adding_replicas", _IDS),
        T.StructField("removing_replicas", _IDS),
        T.StructField("eligible_leader_replicas", _IDS),
        T.StructField("last_known_elr", _IDS),
        T.StructField("leader_recovery_state", T.StringType()),
    ]
)
BROKERS_SCHEMA: Final = T.StructType(
    [
        T.StructField("broker", T.IntegerType()),
        T.StructField("broker_epoch", T.LongType()),
        T.StructField("incarnation_id", T.StringType()),
        T.StructField("rack", T.StringType()),
        T.StructField("fenced", T.BooleanType()),
        T.StructField("in_controlled_shutdown", T.BooleanType()),
        T.StructField("listeners", _NAMES),
        T.StructField("log_dirs", _NAMES),
        T.StructField("cordoned_log_dirs", _NAMES),
    ]
)
CONFIGS_SCHEMA: Final = T.StructType(
    [
        T.StructField("resource_type", T.StringType()),
        T.StructField("resource", T.StringType()),
        T.StructField("config", T.StringType()),
        T.StructField("value", T.StringType()),
    ]
)
ACLS_SCHEMA: Final = T.StructType(list(ACL_FIELDS))

_RECOVERY_STATES: Final = {0: "RECOVERED", 1: "RECOVERING"}
_FOLDED: Final = T.StructType(
    [field for field in SELDOM_TYPE.fields if field.name not in {"offset", "is_full"}]
)


def topics(entries: DataFrame) -> DataFrame:
    """The existing topics (TOPICS_SCHEMA)."""
    counts = (
        entries.where(F.col("kind") == PARTITION)
        .groupBy(F.col("id").alias("topic_id"))
        .agg(F.count(F.lit(1)).alias("partitions"))
    )
    return (
        _living_topics(entries)
        .join(counts, "topic_id", "left")
        .withColumn("partitions", F.coalesce("partitions", F.lit(0).cast("long")))
        .select(*TOPICS_SCHEMA.names)
    )


def partitions(entries: DataFrame) -> DataFrame:
    """The partitions of the existing topics (PARTITIONS_SCHEMA).

    Epochs are null for a partition whose first record in the frame is not its only PartitionRecord.
    """
    found = entries.where(F.col("kind") == PARTITION).withColumnRenamed("id", "topic_id")
    joined = found.join(_with_clears(entries), "topic_id")
    first = F.filter("seldom", lambda item: item["is_full"])
    is_whole = F.element_at(first, 1)["offset"] == F.col("first_offset")
    folded = joined.withColumn(
        "state",
        F.aggregate(
            F.array_sort(F.concat("seldom", "clears")),
            F.lit(None).cast(_FOLDED),
            _fold,
        ),
    ).withColumn("is_known", (F.size(first) == 1) & F.coalesce(is_whole, F.lit(False)))
    state = F.col("state")
    epochs = {
        "leader_epoch": state["leader_epoch"] + F.col("leader_count"),
        "partition_epoch": state["partition_epoch"] + F.col("change_count"),
    }
    return folded.select(
        "topic",
        "topic_id",
        F.col("number").alias("partition"),
        "leader",
        *(
            F.when(F.col("is_known"), epoch.cast("int")).alias(name)
            for name, epoch in epochs.items()
        ),
        state["replicas"].alias("replicas"),
        "isr",
        *(
            state[name].alias(name)
            for name in (
                "adding_replicas",
                "removing_replicas",
                "eligible_leader_replicas",
                "last_known_elr",
            )
        ),
        named(state["leader_recovery_state"], _RECOVERY_STATES).alias("leader_recovery_state"),
    )


def brokers(entries: DataFrame) -> DataFrame:
    """The registered brokers (BROKERS_SCHEMA)."""
    events = entries.where(F.col("kind") == BROKER).select(
        F.col("number").alias("broker"), F.inline("broker")
    )
    at = F.col("offset")
    is_end = F.col("is_registration") | F.col("is_gone")
    registered = ("broker_epoch", "incarnation_id", "rack", "listeners")
    changed = ("fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
    return (
        events.groupBy("broker")
        .agg(
            F.max_by("is_registration", F.when(is_end, at)).alias("is_there"),
            *(
                F.max_by(name, F.when(F.col("is_registration"), at)).alias(name)
                for name in registered
            ),
            *(F.max_by(name, F.when(F.col(name).isNotNull(), at)).alias(name) for name in changed),
        )
        .where("is_there")
        .select(*BROKERS_SCHEMA.names)
    )


def configs(entries: DataFrame) -> DataFrame:
    """The configs of each resource (CONFIGS_SCHEMA); values of passwords are withheld."""
    return (
        configs_with_secrets(entries)
        .withColumn("value", withheld(F.col("config"), F.col("value")))
        .select(*CONFIGS_SCHEMA.names)
    )


def configs_with_secrets(entries: DataFrame) -> DataFrame:
    """The same with unmasked values, for comparisons."""
    # Removing a topic removes its configs; a topic of the same name may have been created since.
    ends = (
        entries.where((F.col("kind") == TOPIC) & F.col("is_gone"))
        .groupBy(F.col("text").alias("ended"))
        .agg(F.max("last_offset").alias("ended_offset"))
    )
    found = entries.where((F.col("kind") == CONFIG) & ~F.col("is_gone"))
    is_ended = (
        (F.col("number") == int(ResourceType.TOPIC))
        & (F.col("id") == F.col("ended"))
        & (F.col("last_offset") < F.col("ended_offset"))
    )
    return found.join(ends, is_ended, "left_anti").select(
        named(F.col("number"), RESOURCE_TYPES).alias("resource_type"),
        F.col("id").alias("resource"),
        F.col("name").alias("config"),
        F.col("text").alias("value"),
    )


def acls(entries: DataFrame) -> DataFrame:
    """The ACLs in effect (ACLS_SCHEMA)."""
    found = entries.where((F.col("kind") == ACL) & ~F.col("is_gone"))
    return found.select(*(F.col("acl")[name].alias(name) for name in ACLS_SCHEMA.names))


def _living_topics(entries: DataFrame) -> DataFrame:
    """The id and the name of each topic."""
    found = entries.where((F.col("kind") == TOPIC) & ~F.col("is_gone"))
    return found.select(F.col("id").alias("topic_id"), F.col("text").alias("topic"))


def _with_clears(entries: DataFrame) -> DataFrame:
    """The topics, with `clears`: the records that clear their eligible leader replicas."""
    none = F.array().cast(T.ArrayType(SELDOM_TYPE))
    cleared = entries.where(F.col("kind") == CLEARED)
    of_topics = cleared.select(F.col("id").alias("topic"), F.col("seldom").alias("of_topic"))
    of_all = cleared.where(F.col("id") == "").agg(
        F.flatten(F.collect_list("seldom")).alias("of_all")
    )
    return (
        _living_topics(entries)
        .join(of_topics, "topic", "left")
        .crossJoin(F.broadcast(of_all))
        .select(
            "topic_id",
            "topic",
            F.concat(F.coalesce("of_topic", none), F.coalesce("of_all", none)).alias("clears"),
        )
    )


def _fold(state: Column, item: Column) -> Column:
    """The state after one more SELDOM_TYPE, in the order of offsets."""
    elr = ("eligible_leader_replicas", "last_known_elr")
    none = F.array().cast(_IDS)
    has_elr = (F.size(F.coalesce(state[elr[0]], none)) > 0) | (
        F.size(F.coalesce(state[elr[1]], none)) > 0
    )
    kept = [name for name in _FOLDED.names if name not in elr]
    cleared = {name: state[name] for name in kept} | dict.fromkeys(elr, none)
    cleared["partition_epoch"] = state["partition_epoch"] + has_elr.cast("int")
    changed = {name: F.coalesce(item[name], state[name]) for name in _FOLDED.names}
    return (
        F.when(item["is_full"].isNull(), _folded(cleared))
        .when(item["is_full"], _folded({name: item[name] for name in _FOLDED.names}))
        .otherwise(_folded(changed))
    )


def _folded(fields: dict[str, Column]) -> Column:
    return F.struct(*(fields[name].alias(name) for name in _FOLDED.names)).cast(_FOLDED)


SCHEMAS: Final = {
    "topics": TOPICS_SCHEMA,
    "partitions": PARTITIONS_SCHEMA,
    "brokers": BROKERS_SCHEMA,
    "configs": CONFIGS_SCHEMA,
    "acls": ACLS_SCHEMA,
}


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job; `at` among the values is a Moment, or None for the end of the log.

    Raises PipelineError as `entries_at` does.
    """
    entries = entries_at(log, values["at"], "--at")
    return {
        "topics": topics(entries).orderBy("topic"),
        "partitions": partitions(entries).orderBy("topic", "partition"),
        "brokers": brokers(entries).orderBy("broker"),
        "configs": configs(entries).orderBy("resource_type", "resource", "config"),
        "acls": acls(entries).orderBy("principal", "resource_type", "resource", "acl_id"),
    }


def entries_at(log: DataFrame, at: object, flag: str) -> DataFrame:
    """The entries at a position, cached, so that the log is read once for all tables.

    Raises PipelineError if the log begins after the position, or ends before an offset. A time may
    be later than the log's end: nothing has changed since.
    """
    assert at is None or isinstance(at, int | datetime)
    rows = valid(log)
    if isinstance(at, datetime):
        # A snapshot's rows have the time that it covers, not the time when it was written.
        rows = in_log_time(rows, log)
    seen = Observation()
    counted = rows.observe(seen, F.max("offset").alias("last")) if isinstance(at, int) else rows
    entries = kept_entries(up_to(counted, at))
    if isinstance(at, int):
        last = observed_values(seen).get("last")
        if last is not None and at > last + 1:
            raise PipelineError(
                f"{flag}: the log ends at offset {last + 1}, before {format_position(at)}; name "
                "that or an"
                " earlier one"
            )
    if at is not None and entries.isEmpty():
        first = rows.agg(F.min("offset").alias("offset")).first()
        begin = None if first is None else first["offset"]
        if begin is not None and up_to(rows, at).isEmpty():
            raise PipelineError(
                f"{flag}: the log begins at offset {begin}, after {format_position(at)}; name a "
                "later moment"
            )
    return entries
