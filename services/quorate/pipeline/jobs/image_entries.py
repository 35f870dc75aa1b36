"""Folds the log into one entry per topic, partition, broker, config and ACL.

One aggregation over the log finds the newest value of every field of each; `image_tables` makes
tables of the entries. A field that changes often (leader, ISR) is kept as the newest value by
offset. Fields that change rarely are kept as a short list, which is folded afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.pipeline.jobs.acls import ACL_FIELDS, acl_columns
from quorate.pipeline.jobs.observed_metrics import observed_values
from quorate.pipeline.jobs.transactions import committed_only, marker_count
from quorate.pipeline.jobs.typed_payloads import of_types
from quorate.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

# Kinds of entries.
TOPIC, PARTITION, BROKER, CONFIG, ACL, CLEARED = (
    "topic",
    "partition",
    "broker",
    "config",
    "acl",
    "elr",
)

IMAGE_RECORDS: Final = (
    TopicRecord,
    RemoveTopicRecord,
    PartitionRecord,
    PartitionChangeRecord,
    ClearElrRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
"""The record types that an image is made of."""

_IDS: Final = T.ArrayType(T.IntegerType())
_NAMES: Final = T.ArrayType(T.StringType())
SELDOM_TYPE: Final = T.StructType(
    [
        T.StructField("offset", T.LongType()),
        T.StructField("is_full", T.BooleanType()),
        T.StructField("leader_epoch", T.IntegerType()),
        T.StructField("partition_epoch", T.IntegerType()),
        T.StructField("replicas", _IDS),
        T.StructField("adding_replicas", _IDS),
        T.StructField("removing_replicas", _IDS),
        T.StructField("leader_recovery_state", T.IntegerType()),
        T.StructField("eligible_leader_replicas", _IDS),
        T.StructField("last_known_elr", _IDS),
    ]
)
"""The fields of a partition in a record, except leader and ISR; null if it does not set them.

`is_full` is null for a record that clears eligible leader replicas.
"""

BROKER_EVENT_TYPE: Final = T.StructType(
    [
        T.StructField("offset", T.LongType()),
        T.StructField("is_registration", T.BooleanType()),
        T.StructField("is_gone", T.BooleanType()),
        T.StructField("broker_epoch", T.LongType()),
        T.StructField("incarnation_id", T.StringType()),
        T.StructField("rack", T.StringType()),
        T.StructField("listeners", _NAMES),
        T.StructField("fenced", T.BooleanType()),
        T.StructField("in_controlled_shutdown", T.BooleanType()),
        T.StructField("log_dirs", _NAMES),
        T.StructField("cordoned_log_dirs", _NAMES),
    ]
)

ENTRIES_SCHEMA: Final = T.StructType(
    [
        T.StructField("kind", T.StringType()),
        T.StructField("id", T.StringType()),
        T.StructField("name", T.StringType()),
        T.StructField("number", T.IntegerType()),
        T.StructField("first_offset", T.LongType()),
        T.StructField("last_offset", T.LongType()),
        T.StructField("is_gone", T.BooleanType()),
        T.StructField("text", T.StringType()),
        T.StructField("acl", T.StructType(list(ACL_FIELDS))),
        T.StructField("leader", T.IntegerType()),
        T.StructField("isr", _IDS),
        T.StructField("leader_count", T.LongType()),
        T.StructField("change_count", T.LongType()),
        T.StructField("seldom", T.ArrayType(SELDOM_TYPE)),
        T.StructField("broker", T.ArrayType(BROKER_EVENT_TYPE)),
    ]
)
"""An entry for each object in the log, including removed ones.

The key is (kind, id, name, number): a topic's id; a partition's topic id and number; a broker's
number; a config's resource, name and type of resource; an ACL's id. `text` is a topic's name or a
config's value.
"""

_NO_LEADER_CHANGE: Final = -2
_NO_RECOVERY_CHANGE: Final = -1


def up_to(frame: DataFrame, at: int | datetime | None) -> DataFrame:
    """The rows up to an offset, or up to the last one at or before a time; None selects all.

    A time selects a prefix of the log: the clocks of leaders differ, so a row between selected rows
    is selected, too, for any timestamp.
    """
    if at is None:
        return frame.select(*frame.columns)
    if isinstance(at, int):
        return frame.where(F.col("offset") <= at).select(*frame.columns)
    last = frame.where(F.col("timestamp") <= F.lit(at)).agg(F.max("offset").alias("last_offset"))
    return frame.join(F.broadcast(last), F.col("offset") <= F.col("last_offset")).select(
        *frame.columns
    )


def kept_entries(frame: DataFrame) -> DataFrame:
    """The same as `image_entries`, computed now and cached.

    Nearly no log has transactions. So their markers are counted while reading, and the frame is
    read again without aborted records only if it has markers.
    """
    seen = Observation()
    entries = _entries(frame.observe(seen, marker_count().alias("markers"))).persist()
    entries.count()
    if not observed_values(seen).get("markers"):
        return entries
    entries.unpersist()
    return image_entries(frame).persist()


def image_entries(frame: DataFrame) -> DataFrame:
    """Fold the complete frame into entries (ENTRIES_SCHEMA)."""
    return _entries(committed_only(frame))


def _entries(frame: DataFrame) -> DataFrame:
    """Fold a frame with only committed records."""
    at = F.col("offset")
    return (
        _events(frame)
        .groupBy("kind", "id", "name", "number")
        .agg(
            F.min(at).alias("first_offset"),
            F.max(at).alias("last_offset"),
            F.max_by("is_gone", at).alias("is_gone"),
            F.max_by("text", F.when(F.col("text").isNotNull(), at)).alias("text"),
            F.max_by("acl", F.when(F.col("acl").isNotNull(), at)).alias("acl"),
            F.max_by("leader", F.when(F.col("leader").isNotNull(), at)).alias("leader"),
            F.max_by("isr", F.when(F.col("isr").isNotNull(), at)).alias("isr"),
            F.count_if(F.col("is_change") & F.col("leader").isNotNull()).alias("leader_count"),
            F.count_if("is_change").alias("change_count"),
            F.collect_list("seldom").alias("seldom"),
            F.collect_list("broker").alias("broker"),
        )
        .select(*ENTRIES_SCHEMA.names)
    )


def _events(frame: DataFrame) -> DataFrame:
    """The values in each record, in columns for all kinds; null for values it does not contain."""
    config, acl = F.col("config_record"), F.col("access_control_entry_record")
    full, change = F.col("partition_record"), F.col("partition_change_record")
    topic = F.col("topic_record")
    leader = F.when(change["leader"] != _NO_LEADER_CHANGE, change["leader"])
    is_removal = F.col("record_type").isin(
        RemoveTopicRecord.__name__, RemoveAccessControlEntryRecord.__name__
    )
    acl_struct = F.struct(*acl_columns(acl)).cast(T.StructType(list(ACL_FIELDS)))
    return of_types(frame, *IMAGE_RECORDS).select(
        *_key(),
        "offset",
        (is_removal | (config.isNotNull() & config["value"].isNull())).alias("is_gone"),
        F.coalesce(topic["name"], config["value"]).alias("text"),
        F.when(acl.isNotNull(), acl_struct).alias("acl"),
        F.coalesce(full["leader"], leader).alias("leader"),
        F.coalesce(full["isr"], change["isr"]).alias("isr"),
        change.isNotNull().alias("is_change"),
        _seldom(full, change).alias("seldom"),
        _broker_event().alias("broker"),
    )


def _key() -> list[Column]:
    """The columns of an entry's key: kind, id, name, number."""
    kinds = {
        TOPIC: (TopicRecord, RemoveTopicRecord),
        PARTITION: (PartitionRecord, PartitionChangeRecord),
        CONFIG: (ConfigRecord,),
        ACL: (AccessControlEntryRecord, RemoveAccessControlEntryRecord),
        CLEARED: (ClearElrRecord,),
    }
    kind = F.lit(BROKER)
    for word, records in kinds.items():
        names = [record.__name__ for record in records]
        kind = F.when(F.col("record_type").isin(names), word).otherwise(kind)
    ids = (
        "partition_change_record.topicId",
        "partition_record.topicId",
        "topic_record.topicId",
        "remove_topic_record.topicId",
        "config_record.resourceName",
        "access_control_entry_record.id",
        "remove_access_control_entry_record.id",
        "clear_elr_record.topicName",
    )
    numbers = (
        "partition_change_record.partitionId",
        "partition_record.partitionId",
        "config_record.resourceType",
        "register_broker_record.brokerId",
        "unregister_broker_record.brokerId",
        "broker_registration_change_record.brokerId",
        "fence_broker_record.id",
        "unfence_broker_record.id",
    )
    return [
        kind.alias("kind"),
        F.coalesce(*ids).alias("id"),
        F.col("config_record.name").alias("name"),
        F.coalesce(*numbers).cast("int").alias("number"),
    ]


def _seldom(full: Column, change: Column) -> Column:
    """A SELDOM_TYPE of a record with such values, or null."""
    none = F.array().cast(_IDS)
    recovery = F.when(
        change["leaderRecoveryState"] != _NO_RECOVERY_CHANGE, change["leaderRecoveryState"]
    )
    of_full = F.struct(
        "offset",
        F.lit(True),
        full["leaderEpoch"],
        full["partitionEpoch"],
        full["replicas"],
        F.coalesce(full["addingReplicas"], none),
        F.coalesce(full["removingReplicas"], none),
        F.coalesce(full["leaderRecoveryState"].cast("int"), F.lit(0)),
        F.coalesce(full["eligibleLeaderReplicas"], none),
        F.coalesce(full["lastKnownElr"], none),
    ).cast(SELDOM_TYPE)
    of_change = F.struct(
        "offset",
        F.lit(False),
        F.lit(None),
        F.lit(None),
        change["replicas"],
        change["addingReplicas"],
        change["removingReplicas"],
        recovery.cast("int"),
        change["eligibleLeaderReplicas"],
        change["lastKnownElr"],
    ).cast(SELDOM_TYPE)
    says_any = (
        change["replicas"].isNotNull()
        | change["addingReplicas"].isNotNull()
        | change["removingReplicas"].isNotNull()
        | recovery.isNotNull()
        | change["eligibleLeaderReplicas"].isNotNull()
        | change["lastKnownElr"].isNotNull()
    )
    of_clear = F.struct("offset", *(F.lit(None) for _ in SELDOM_TYPE.names[1:])).cast(SELDOM_TYPE)
    return (
        F.when(full.isNotNull(), of_full)
        .when(change.isNotNull() & says_any, of_change)
        .when(F.col("clear_elr_record").isNotNull(), of_clear)
    )


def _broker_event() -> Column:
    """A BROKER_EVENT_TYPE of a record about a broker, or null."""
    registered, gone = F.col("register_broker_record"), F.col("unregister_broker_record")
    changed = F.col("broker_registration_change_record")
    fenced, unfenced = F.col("fence_broker_record"), F.col("unfence_broker_record")
    none = F.array().cast(_NAMES)
    listeners = F.array_sort(
        F.transform(
            registered["endPoints"],
            lambda point: F.concat(
                point["name"], F.lit("://"), point["host"], F.lit(":"), point["port"].cast("string")
            ),
        )
    )
    is_fenced = (
        F.when(registered.isNotNull(), registered["fenced"])
        .when(changed["fenced"] != 0, changed["fenced"] > 0)
        .when(fenced.isNotNull(), F.lit(True))
        .when(unfenced.isNotNull(), F.lit(False))
    )
    is_leaving = F.when(
        registered.isNotNull(),
        F.coalesce(registered["inControlledShutdown"], F.lit(False)),
    ).when(changed["inControlledShutdown"] != 0, F.lit(True))
    event = F.struct(
        "offset",
        registered.isNotNull(),
        gone.isNotNull(),
        registered["brokerEpoch"],
        registered["incarnationId"],
        registered["rack"],
        listeners,
        is_fenced,
        is_leaving,
        F.when(registered.isNotNull(), F.coalesce(registered["logDirs"], none)).when(
            F.size(changed["logDirs"]) > 0, changed["logDirs"]
        ),
        F.when(registered.isNotNull(), F.coalesce(registered["cordonedLogDirs"], none)).otherwise(
            changed["cordonedLogDirs"]
        ),
    ).cast(BROKER_EVENT_TYPE)
    is_any = registered.isNotNull()
    for record in (gone, changed, fenced, unfenced):
        is_any |= record.isNotNull()
    return F.when(is_any, event)
