"""Job `sizes`: bytes by record type and topic, and what a snapshot would save.

Sizes are those on disk: a record with its framing, without batch headers. Rows of a snapshot count
as live records, not as log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from quorate.pipeline.jobs.log_rows import is_snapshot, valid
from quorate.pipeline.jobs.transactions import committed_only
from quorate.records.batch import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

SCHEMAS: Final = {
    "by_type": StructType(
        [
            StructField("record_type", StringType()),
            StructField("record_count", LongType()),
            StructField("bytes", LongType()),
            StructField("share", DoubleType()),
            StructField("live_count", LongType()),
            StructField("live_bytes", LongType()),
            StructField("saved_bytes", LongType()),
        ]
    ),
    "by_topic": StructType(
        [
            StructField("topic", StringType()),
            StructField("topic_id", StringType()),
            StructField("record_count", LongType()),
            StructField("bytes", LongType()),
            StructField("share", DoubleType()),
        ]
    ),
}
BATCH_HEADERS: Final = "(batch headers)"
# Records about lasting objects: the kind of object and the fields that identify it.
_THINGS: Final = {
    "TopicRecord": ("topic", "topicId"),
    "RemoveTopicRecord": ("topic", "topicId"),
    "PartitionRecord": ("partition", "topicId", "partitionId"),
    "ConfigRecord": ("config", "resourceType", "resourceName", "name"),
    "RegisterBrokerRecord": ("broker", "brokerId"),
    "UnregisterBrokerRecord": ("broker", "brokerId"),
    "RegisterControllerRecord": ("controller", "controllerId"),
    "FeatureLevelRecord": ("feature", "name"),
    "ClientQuotaRecord": ("quota", "entity", "key"),
    "ProducerIdsRecord": ("producer ids",),
    "UserScramCredentialRecord": ("scram", "name", "mechanism"),
    "RemoveUserScramCredentialRecord": ("scram", "name", "mechanism"),
    "AccessControlEntryRecord": ("acl", "id"),
    "RemoveAccessControlEntryRecord": ("acl", "id"),
    "DelegationTokenRecord": ("token", "tokenId"),
    "RemoveDelegationTokenRecord": ("token", "tokenId"),
    "KRaftVersionRecord": ("kraft.version",),
    "VotersRecord": ("voters",),
}
# Records that remove their object.
_GONE: Final = """record_type like 'Remove%' or record_type = 'UnregisterBrokerRecord'
    or (record_type = 'ConfigRecord' and get_json_object(payload, '$.value') is null)
    or (record_type = 'ClientQuotaRecord' and get_json_object(payload, '$.remove') = 'true')
    or (record_type = 'FeatureLevelRecord' and get_json_object(payload, '$.featureLevel') = '0')"""
_TOPIC_TYPES: Final = (
    "TopicRecord",
    "PartitionRecord",
    "PartitionChangeRecord",
    "RemoveTopicRecord",
)


def sizes_by_type(log: DataFrame) -> DataFrame:
    """One row per record type of the log or of its snapshot, and one for batch headers.

    `share` is the fraction of all bytes, and null if the log has none. `live_*` is approximately
    what a snapshot at the end would keep of the type: partitions as they were created, and
    without the snapshot's own header and footer.
    """
    rows = valid(log)
    of_log = rows.where(~is_snapshot())
    types = of_log.groupBy("record_type").agg(
        F.count("*").alias("record_count"), F.sum(record_bytes()).alias("bytes")
    )
    # Every batch has a record at its base offset, because the metadata log is not compacted.
    batches = of_log.select(
        F.lit(BATCH_HEADERS).alias("record_type"),
        F.count_distinct("batch_base_offset").alias("record_count"),
    ).withColumn("bytes", HEADER_BYTES * F.col("record_count"))
    alive = (
        _alive(committed_only(rows))
        .groupBy("record_type")
        .agg(F.count("*").alias("live_count"), F.sum("bytes").alias("live_bytes"))
    )
    whole = F.sum("bytes").over(Window.partitionBy())
    none = F.lit(0).cast("bigint")
    in_log, live_bytes = F.coalesce("bytes", none), F.coalesce("live_bytes", none)
    return (
        types.unionByName(batches)
        .join(alive, "record_type", "full")
        .select(
            "record_type",
            F.coalesce("record_count", none).alias("record_count"),
            in_log.alias("bytes"),
            F.try_divide(in_log, whole).alias("share"),
            F.coalesce("live_count", none).alias("live_count"),
            live_bytes.alias("live_bytes"),
            F.greatest(none, in_log - live_bytes).alias("saved_bytes"),
        )
    )


def sizes_by_topic(log: DataFrame) -> DataFrame:
    """One row per topic id, with its name if known; `share` is the fraction of all topics."""
    rows = valid(log).where(F.col("record_type").isin(*_TOPIC_TYPES))
    told = rows.withColumn("topic_id", F.get_json_object("payload", "$.topicId"))
    is_topic = F.col("record_type") == "TopicRecord"
    topics = told.groupBy("topic_id").agg(
        F.max(F.when(is_topic, F.get_json_object("payload", "$.name"))).alias("topic"),
        F.count_if(~is_snapshot()).alias("record_count"),
        F.sum(F.when(is_snapshot(), 0).otherwise(record_bytes())).alias("bytes"),
    )
    whole = topics.agg(F.sum("bytes").alias("whole"))
    return topics.crossJoin(F.broadcast(whole)).select(
        "topic",
        "topic_id",
        "record_count",
        "bytes",
        F.when(F.col("whole") > 0, F.col("bytes") / F.col("whole")).alias("share"),
    )


def record_bytes() -> Column:
    """The size of a row's record on disk in bytes, with its length and framing.

    KRaft gives all records of a batch one timestamp, so the timestamp delta takes one byte, as do
    the attributes and the number of headers, which is 0.
    """
    key_bytes = F.coalesce(F.octet_length("key"), F.lit(0))
    value_bytes = F.coalesce(F.octet_length("value"), F.lit(0))
    body = (
        F.lit(3)
        + _varint_bytes(F.col("offset") - F.col("batch_base_offset"))
        + _varint_bytes(key_bytes)
        + key_bytes
        + _varint_bytes(value_bytes)
        + value_bytes
    )
    return (_varint_bytes(body) + body).cast("bigint")


def _varint_bytes(number: Column) -> Column:
    """The size in bytes of a signed varint; the number must be -1 or more."""
    sized = F.when(number < 64, 1)
    for width in (2, 3, 4):
        sized = sized.when(number < 2 ** (7 * width - 1), width)
    return sized.otherwise(5)


def _alive(rows: DataFrame) -> DataFrame:
    """The type and size of the newest record of each existing object."""
    kind, identity = F.lit(None), F.lit(None)
    for record_type, (thing, *fields) in _THINGS.items():
        is_type = F.col("record_type") == record_type
        parts = [F.get_json_object("payload", f"$.{name}") for name in fields]
        kind = F.when(is_type, thing).otherwise(kind)
        identity = F.when(is_type, F.concat_ws("\0", *parts)).otherwise(identity)
    # Only the JSON of the newest records is parsed. The rows are cached, because live partitions
    # and configs depend on live topics.
    newest = (
        rows.where(F.col("record_type").isin(*_THINGS))
        .groupBy(kind.alias("kind"), identity.alias("identity"))
        .agg(
            F.max_by(
                F.struct("record_type", "offset", record_bytes().alias("bytes"), "payload"),
                "offset",
            ).alias("last")
        )
        .select("kind", "last.*")
        .where(f"not ({_GONE})")
        .select(
            "kind",
            "record_type",
            "offset",
            "bytes",
            F.get_json_object("payload", "$.topicId").alias("topic_id"),
            F.get_json_object("payload", "$.name").alias("name"),
            F.get_json_object("payload", "$.resourceType").alias("resource_type"),
            F.get_json_object("payload", "$.resourceName").alias("resource_name"),
        )
        .persist()
    )
    # Removing a topic removes its partitions and configs without records of their own.
    topics = newest.where("kind = 'topic'").select(
        F.col("topic_id").alias("live_id"),
        F.col("name").alias("live_name"),
        F.col("offset").alias("born"),
    )
    partitions = newest.where("kind = 'partition'").join(
        topics, F.col("topic_id") == F.col("live_id"), "left_semi"
    )
    is_topics = "kind = 'config' and coalesce(resource_type, '') = '2'"
    configs = newest.where(is_topics).join(
        topics,
        (F.col("resource_name") == F.col("live_name")) & (F.col("offset") >= F.col("born")),
        "left_semi",
    )
    others = newest.where(f"kind <> 'partition' and not ({is_topics})")
    return others.unionByName(partitions).unionByName(configs).select("record_type", "bytes")


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job."""
    del values
    return {
        "by_type": sizes_by_type(log).orderBy(F.desc("bytes"), "record_type"),
        "by_topic": sizes_by_topic(log).orderBy(F.desc("bytes"), "topic_id"),
    }
