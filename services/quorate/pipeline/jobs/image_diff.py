"""Job `diff`: what changed between two positions in the log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.pipeline.jobs import image_tables
from quorate.pipeline.jobs.configs import withheld
from quorate.pipeline.jobs.log_position import comes_before, format_position
from quorate.pipeline.jobs.registry import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

DIFF_SCHEMA: Final = T.StructType(
    [
        T.StructField("subject", T.StringType()),
        T.StructField("key", T.StringType()),
        T.StructField("change", T.StringType()),
        T.StructField("fields", T.ArrayType(T.StringType())),
        T.StructField("before", T.StringType()),
        T.StructField("after", T.StringType()),
    ]
)

_TEXTS: Final = T.MapType(T.StringType(), T.StringType())


def diff(before: DataFrame, after: DataFrame) -> DataFrame:
    """The differences between two frames of `image_entries` (DIFF_SCHEMA).

    `change` is `added`, `removed` or `changed`. `before` and `after` are JSON: the complete row, or
    for a changed row only the columns in `fields`. A recreated topic has another id, so it is both
    removed and added.
    """
    old = _rows(before).withColumnRenamed("row", "old")
    new = _rows(after).withColumnRenamed("row", "new")
    fields = F.filter(
        F.map_keys(F.coalesce("new", "old")),
        lambda name: ~F.col("old")[name].eqNullSafe(F.col("new")[name]),
    )
    change = (
        F.when(F.col("old").isNull(), "added")
        .when(F.col("new").isNull(), "removed")
        .otherwise("changed")
    )
    return (
        old.join(new, ["subject", "identity", "key", "config"], "full")
        .withColumn("change", change)
        .withColumn("fields", F.array_sort(fields))
        .where(F.size("fields") > 0)
        .select(
            "subject",
            "key",
            "change",
            F.when(F.col("change") == "changed", F.col("fields")).alias("fields"),
            *(_told(name).alias(alias) for name, alias in (("old", "before"), ("new", "after"))),
        )
    )


def _told(side: str) -> Column:
    """One side as JSON without secrets; for a changed row only the differences."""
    is_told = F.map_filter(side, lambda name, _: F.array_contains(F.col("fields"), name))
    told = F.when(F.col("change") == "changed", is_told).otherwise(F.col(side))
    hidden = F.transform_values(
        told,
        lambda name, value: F.when(name == "value", withheld(F.col("config"), value)).otherwise(
            value
        ),
    )
    return F.to_json(hidden, {"ignoreNullFields": "false"})


def _rows(entries: DataFrame) -> DataFrame:
    """All tables as rows of subject, identity, key, config, row (a map of strings)."""
    partition_key = F.concat_ws("-", "topic", "partition")
    config_key = F.concat_ws(" ", "resource_type", "resource", "config")
    acl_key = F.concat_ws(
        " ", "principal", "permission", "operation", "resource_type", "pattern_type", "resource"
    )
    tables: tuple[tuple[str, Callable[[DataFrame], DataFrame], Column, Column], ...] = (
        ("topics", image_tables.topics, F.col("topic_id"), F.col("topic")),
        (
            "partitions",
            image_tables.partitions,
            F.concat_ws("-", "topic_id", "partition"),
            partition_key,
        ),
        (
            "brokers",
            image_tables.brokers,
            F.col("broker").cast("string"),
            F.col("broker").cast("string"),
        ),
        ("configs", image_tables.configs_with_secrets, config_key, config_key),
        ("acls", image_tables.acls, F.col("acl_id"), acl_key),
    )
    rows = [_as_texts(name, table(entries), identity, key) for name, table, identity, key in tables]
    joined = rows[0]
    for other in rows[1:]:
        joined = joined.unionByName(other)
    return joined


def _as_texts(name: str, table: DataFrame, identity: Column, key: Column) -> DataFrame:
    pairs = [
        item for column in table.columns for item in (F.lit(column), F.col(column).cast("string"))
    ]
    return table.select(
        F.lit(name).alias("subject"),
        identity.alias("identity"),
        key.alias("key"),
        (F.col("config") if "config" in table.columns else F.lit("")).alias("config"),
        F.create_map(*pairs).cast(_TEXTS).alias("row"),
    )


SCHEMAS: Final = {"diff": DIFF_SCHEMA}


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The table of the job; `from` and `to` among the values are Moments, None is the log's end.

    Raises PipelineError as `entries_at` does, and if the second comes before the first.
    """
    begin, end = values["from"], values["to"]
    assert isinstance(begin, int | datetime)
    if isinstance(end, int | datetime) and comes_before(end, begin):
        raise PipelineError(
            f"--to: {format_position(end)} comes before --from, {format_position(begin)}; "
            "exchange the two"
        )
    before = image_tables.entries_at(log, begin, "--from")
    after = image_tables.entries_at(log, end, "--to")
    return {"diff": diff(before, after).orderBy("subject", "key", "change")}
