"""Job `membership`: voter changes and the voter sets over time.

At kraft.version 1 the voter sets are the log's VotersRecords (KIP-853). At version 0 each
LeaderChange names the voters, without directory ids and endpoints; an upgrade adds directory ids.
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
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from quorate.pipeline.jobs.log_rows import duration_ms, rows_of, span_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

_ENDPOINTS: Final = ArrayType(
    StructType(
        [
            StructField("name", StringType()),
            StructField("host", StringType()),
            StructField("port", IntegerType()),
        ]
    )
)
_VOTERS: Final = ArrayType(
    StructType(
        [
            StructField("id", IntegerType()),
            StructField("directory_id", StringType()),
            StructField("endpoints", _ENDPOINTS),
        ]
    )
)
SCHEMAS: Final = {
    "changes": StructType(
        [
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("epoch", IntegerType()),
            StructField("change", StringType()),
            StructField("voter_id", IntegerType()),
            StructField("directory_id", StringType()),
            StructField("endpoints", _ENDPOINTS),
            StructField("previous_endpoints", _ENDPOINTS),
            StructField("voter_count", IntegerType()),
        ]
    ),
    "voter_sets": StructType(
        [
            StructField("start_offset", LongType()),
            StructField("start", TimestampType()),
            StructField("end_offset", LongType()),
            StructField("end", TimestampType()),
            StructField("open", BooleanType()),
            StructField("duration_ms", LongType()),
            StructField("voter_count", IntegerType()),
            StructField("voters", _VOTERS),
        ]
    ),
}
RECORD_TYPES: Final = ("VotersRecord", "LeaderChangeMessage")
_PAYLOAD: Final = (
    "voters array<struct<voterId: int, voterDirectoryId: string,"
    " endpoints: array<struct<name: string, host: string, port: int>>>>"
)
# A voter stays the same if its directory id stays the same, or was not known before.
_SAME: Final = "b.id = v.id and (b.directory_id is null or b.directory_id <=> v.directory_id)"
_MOVED: Final = (
    "b.id = v.id and b.directory_id <=> v.directory_id and not b.endpoints <=> v.endpoints"
)
_CHANGES: Final = {
    "initial": "if(before is null, voters, null)",
    "added": f"filter(voters, v -> not exists(before, b -> {_SAME}))",
    "removed": f"filter(before, b -> not exists(voters, v -> {_SAME}))",
    "moved": f"filter(voters, v -> exists(before, b -> {_MOVED}))",
    "identified": (
        "filter(voters, v -> v.directory_id is not null"
        " and exists(before, b -> b.id = v.id and b.directory_id is null))"
    ),
}


def voter_changes(log: DataFrame) -> DataFrame:
    """One row per voter and change: `initial`, `added`, `removed`, `moved` or `identified`.

    The voters of the frame's first voter set are `initial`, and have no time if they come from a
    snapshot. A replaced disk is one voter removed and one added: same id, different directory id.
    """
    each = [
        F.expr(
            f"transform(coalesce({voters}, filter(voters, v -> false)),"
            f" w -> struct('{change}' as change, w as v))"
        )
        for change, voters in _CHANGES.items()
    ]
    rows = _sets(log).withColumn("told", F.explode(F.flatten(F.array(*each))))
    was = F.expr("filter(before, b -> b.id = told.v.id and b.directory_id <=> told.v.directory_id)")
    return rows.select(
        F.when(~F.col("from_snapshot"), F.col("offset")).alias("offset"),
        F.when(~F.col("from_snapshot"), F.col("timestamp")).alias("timestamp"),
        F.col("leader_epoch").alias("epoch"),
        F.col("told.change").alias("change"),
        F.col("told.v.id").alias("voter_id"),
        F.col("told.v.directory_id").alias("directory_id"),
        F.col("told.v.endpoints").alias("endpoints"),
        F.when(F.col("told.change") == "moved", F.get(was, 0)["endpoints"]).alias(
            "previous_endpoints"
        ),
        F.size("voters").alias("voter_count"),
    )


def voter_sets(log: DataFrame) -> DataFrame:
    """One row for each voter set, in order, with the time until the next one."""
    following = Window.orderBy("offset").rowsBetween(1, 1)
    rows = (
        _sets(log)
        .withColumn("end_offset", F.first("offset").over(following))
        .withColumn("end", F.first("timestamp").over(following))
        .withColumn("start", F.when(~F.col("from_snapshot"), F.col("timestamp")))
        .crossJoin(F.broadcast(span_of(log)))
    )
    return rows.select(
        F.when(~F.col("from_snapshot"), F.col("offset")).alias("start_offset"),
        F.col("start"),
        F.col("end_offset"),
        F.col("end"),
        F.col("end_offset").isNull().alias("open"),
        duration_ms(F.col("start"), F.col("end")).alias("duration_ms"),
        F.size("voters").alias("voter_count"),
        F.col("voters"),
    )


def _sets(log: DataFrame) -> DataFrame:
    """Rows whose voter set differs from the previous one, in `before`, with their `voters`."""
    rows = rows_of(log, RECORD_TYPES)
    is_set = F.col("record_type") == "VotersRecord"
    first = rows.where(is_set).select(
        F.min(F.struct("offset", "batch_base_offset")).alias("first_set")
    )
    is_static = F.col("first_set").isNull() | (
        (F.col("offset") < F.col("first_set.offset"))
        # A quorum bootstrapped at version 1 starts with one batch that has both.
        & (F.col("batch_base_offset") != F.col("first_set.batch_base_offset"))
    )
    told = (
        rows.crossJoin(F.broadcast(first))
        .where(is_set | is_static)
        .withColumn("said", F.from_json("payload", _PAYLOAD)["voters"])
        .withColumn(
            "voters", F.array_sort(F.transform("said", lambda voter: _voter(voter, is_set)))
        )
    )
    before = Window.orderBy("offset").rowsBetween(-1, -1)
    return (
        told.withColumn("before", F.first("voters").over(before))
        .where("before is null or not voters <=> before")
        .select("offset", "timestamp", "leader_epoch", "from_snapshot", "voters", "before")
    )


def _voter(voter: Column, is_set: Column) -> Column:
    return F.struct(
        voter["voterId"].alias("id"),
        # Below kraft.version 1 directory ids do not count, even if a LeaderChange has some.
        F.when(is_set, voter["voterDirectoryId"]).alias("directory_id"),
        F.when(is_set, voter["endpoints"]).alias("endpoints"),
    )


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job."""
    del values
    return {
        "changes": voter_changes(log).orderBy("offset", "change", "voter_id"),
        "voter_sets": voter_sets(log).orderBy("start_offset"),
    }
