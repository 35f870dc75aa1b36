"""Job `configs`: config values over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.controller.configs.config_definitions import SENSITIVE
from quorate.controller.configs.messages import ResourceType
from quorate.pipeline.jobs.cached_rows import cache_typed_rows
from quorate.pipeline.jobs.enum_names import named
from quorate.pipeline.jobs.intervals import INTERVAL_FIELDS, closed
from quorate.pipeline.jobs.topic_lifetimes import topic_lives
from quorate.pipeline.jobs.typed_payloads import of_types
from quorate.records.metadata import ConfigRecord, RemoveTopicRecord, TopicRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, WindowSpec

CONFIG_HISTORY_SCHEMA: Final = T.StructType(
    [
        T.StructField("resource_type", T.StringType()),
        T.StructField("resource", T.StringType()),
        T.StructField("config", T.StringType()),
        T.StructField("value", T.StringType()),
        T.StructField("previous_value", T.StringType()),
        *INTERVAL_FIELDS,
        T.StructField("ended_by", T.StringType()),
    ]
)
WITHHELD: Final = "(withheld)"
CONFIG_RECORDS: Final = (ConfigRecord, TopicRecord, RemoveTopicRecord)
RESOURCE_TYPES: Final = {int(member): member.name for member in ResourceType}


def config_history(frame: DataFrame) -> DataFrame:
    """One row for each value set, until it was set again or removed.

    `previous_value` is null if no value was set right before. `ended_by` is `change`, `removal` or
    `topic removal`, and null while the value is in effect. The resource of all brokers has the name
    "". Values of passwords and other secrets are withheld. The frame is the result of `kept` for
    CONFIG_RECORDS: only committed records.
    """
    events = _events(frame).unionByName(_topic_ends(frame))
    intervals = (
        events.withColumn("previous_value", F.first("value").over(_neighbour(-1)))
        .withColumn("end_offset", F.first("offset").over(_neighbour(1)))
        .withColumn("end", F.first("timestamp").over(_neighbour(1)))
        .withColumn("ended_by", F.first("kind").over(_neighbour(1)))
        .where(F.col("value").isNotNull())
        .withColumnsRenamed({"offset": "start_offset", "timestamp": "start"})
        .withColumn("resource_type", named(F.col("type"), RESOURCE_TYPES))
    )
    shown = {name: withheld(F.col("config"), F.col(name)) for name in ("value", "previous_value")}
    return closed(intervals.withColumns(shown), frame).select(*CONFIG_HISTORY_SCHEMA.names)


def _neighbour(step: int) -> WindowSpec:
    """The previous (-1) or next (1) event of the same config."""
    return (
        Window.partitionBy("type", "resource", "config").orderBy("offset").rowsBetween(step, step)
    )


def withheld(config: Column, value: Column) -> Column:
    """The value, unless the name of the config marks it as a secret."""
    is_secret = F.lower(config).rlike(SENSITIVE.pattern) & value.isNotNull()
    return F.when(is_secret, F.lit(WITHHELD)).otherwise(value)


def _events(frame: DataFrame) -> DataFrame:
    record = F.col("config_record")
    return of_types(frame, ConfigRecord).select(
        record["resourceType"].cast("int").alias("type"),
        record["resourceName"].alias("resource"),
        record["name"].alias("config"),
        record["value"].alias("value"),
        "offset",
        "timestamp",
        F.when(record["value"].isNull(), "removal").otherwise("change").alias("kind"),
    )


def _topic_ends(frame: DataFrame) -> DataFrame:
    """An event without a value for every config of a removed topic, at the removal."""
    ends = topic_lives(frame).where("removed_offset is not null and topic is not null")
    topics = F.col("type") == int(ResourceType.TOPIC)
    configs = _events(frame).where(topics).select("type", "resource", "config").distinct()
    return configs.join(ends, configs["resource"] == ends["topic"]).select(
        "type",
        "resource",
        "config",
        F.lit(None).cast("string").alias("value"),
        F.col("removed_offset").alias("offset"),
        F.col("removed").alias("timestamp"),
        F.lit("topic removal").alias("kind"),
    )


SCHEMAS: Final = {"configs": CONFIG_HISTORY_SCHEMA}


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The table of the job, in the order of the log."""
    del values
    rows = cache_typed_rows(log, *CONFIG_RECORDS)
    return {"configs": config_history(rows).orderBy("start_offset", "config")}
