"""What to watch of a quorum (`docs/metrics.md`), judged from its log.

Each threshold is Kafka's custom: above it a verdict is `warn`, above ten times as much `critical`.
Two leaders of an epoch and damage are `critical` at once. A number that the log does not tell is
`unknown`, with what would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from quorate.pipeline.jobs.compare import logs
from quorate.pipeline.jobs.damage import first_damage, told_damage
from quorate.pipeline.jobs.log_rows import damaged, is_snapshot, valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

SCHEMAS: Final = {
    "health": StructType(
        [
            StructField("metric", StringType()),
            StructField("verdict", StringType()),
            StructField("value", DoubleType()),
            StructField("threshold", DoubleType()),
            StructField("what", StringType()),
        ]
    )
}
LEADERS: Final = "ActiveControllerCount"
ELECTIONS: Final = "LeaderElectionRate"
END_OFFSET: Final = "MetadataLogEndOffset"
LAG: Final = "MetadataLogLag"
SNAPSHOT_TIME: Final = "SnapshotGenerationTimeMs"
ERRORS: Final = "MetadataErrorCount"
THRESHOLDS: Final = {
    LEADERS: 1.0,
    ELECTIONS: 1.0,
    END_OFFSET: None,
    LAG: 1000.0,
    SNAPSHOT_TIME: 10_000.0,
    ERRORS: 0.0,
}
_CRITICAL_FACTOR: Final = 10
_HOUR_MS: Final = 3_600_000
_LEADER: Final = "leaderId int"


def health(log: DataFrame) -> DataFrame:
    """One row a metric: `verdict` is ok, warn, critical or unknown, `value` the number behind it.

    `log` has the rows of every directory that is to be judged.
    """
    measured = (
        _leaders(log)
        .unionByName(_election_rate(log))
        .unionByName(_ends(log))
        .unionByName(_snapshot_time(log))
        .unionByName(_errors(log))
    )
    threshold = F.lit(None).cast("double")
    for metric, bound in THRESHOLDS.items():
        threshold = F.when(F.col("metric") == metric, F.lit(bound)).otherwise(threshold)
    return measured.withColumn("threshold", threshold.cast("double")).select(
        "metric", _verdict().alias("verdict"), "value", "threshold", "what"
    )


def _verdict() -> Column:
    value, threshold = F.col("value"), F.col("threshold")
    return (
        F.when(value.isNull(), "unknown")
        .when(threshold.isNull(), "ok")
        .when(F.col("metric") == LEADERS, F.when(value == threshold, "ok").otherwise("critical"))
        .when(F.col("metric") == ERRORS, F.when(value > threshold, "critical").otherwise("ok"))
        .when(value > _CRITICAL_FACTOR * threshold, "critical")
        .when(value > threshold, "warn")
        .otherwise("ok")
    )


def _row(rows: DataFrame, metric: str, value: Column, what: Column) -> DataFrame:
    return rows.select(
        F.lit(metric).alias("metric"), value.cast("double").alias("value"), what.alias("what")
    )


def _leaders(log: DataFrame) -> DataFrame:
    """The most leaders that any epoch had: two are a split brain."""
    changes = valid(log).where("record_type = 'LeaderChangeMessage'")
    each = changes.groupBy("leader_epoch").agg(
        F.count_distinct(F.from_json("payload", _LEADER)["leaderId"]).alias("leaders")
    )
    worst = each.agg(F.max(F.struct("leaders", "leader_epoch")).alias("worst"))
    what = F.when(
        F.col("worst").isNotNull(),
        F.format_string("leaders in epoch %d, the most of any", F.col("worst.leader_epoch")),
    ).otherwise("no epoch begins in what was read: read from an earlier offset")
    return _row(worst, LEADERS, F.col("worst.leaders"), what)


def _election_rate(log: DataFrame) -> DataFrame:
    """The most epochs that began within one hour. The first leader of a log was no re-election."""
    begun = (
        valid(log)
        .where("record_type = 'LeaderChangeMessage'")
        .groupBy("leader_epoch")
        .agg(F.min("offset").alias("offset"), F.unix_millis(F.min("timestamp")).alias("at_ms"))
        .where("offset > 0")
    )
    hour = Window.orderBy("at_ms").rangeBetween(-_HOUR_MS, Window.currentRow)
    worst = begun.withColumn("in_hour", F.count("*").over(hour)).agg(
        F.max(F.struct("in_hour", "at_ms")).alias("worst")
    )
    what = F.when(
        F.col("worst").isNotNull(),
        F.concat(
            F.lit("elections in the hour before "),
            F.date_format(F.timestamp_millis("worst.at_ms"), "yyyy-MM-dd'T'HH:mm:ss'Z'"),
        ),
    ).otherwise("no leader was elected after the first")
    return _row(worst, ELECTIONS, F.coalesce("worst.in_hour", F.lit(0)), what)


def _ends(log: DataFrame) -> DataFrame:
    """Where the longest log ends, and how far the shortest ends before it."""
    ends = logs(log).agg(
        F.max("end_offset").alias("end_offset"),
        F.max(F.struct("lag", "node_id")).alias("worst"),
        F.count("end_offset").alias("log_count"),
    )
    what = F.when(
        F.col("log_count") > 1,
        F.format_string("records that node %d lacks, the most of any", F.col("worst.node_id")),
    ).otherwise("one log alone: name every voter's directory with --path")
    lag = F.when(F.col("log_count") > 1, F.col("worst.lag"))
    return _row(ends, END_OFFSET, F.col("end_offset"), F.lit("where the longest ends")).unionByName(
        _row(ends, LAG, lag, what)
    )


def _snapshot_time(log: DataFrame) -> DataFrame:
    """From a snapshot's header to its footer, by the clock of its writer.

    Kafka stamps them when they are written; Quorate stamps a snapshot with one time.
    """
    stamped = F.unix_millis("timestamp")
    took = (
        log.where(is_snapshot() & F.col("crc_valid") & (F.col("offset") >= 0))
        .groupBy("source_node", "segment")
        .agg(
            F.max(F.when(F.col("record_type") == "SnapshotFooterRecord", stamped)).alias("end_ms"),
            F.min(F.when(F.col("record_type") == "SnapshotHeaderRecord", stamped)).alias(
                "start_ms"
            ),
        )
        .withColumn("took_ms", F.col("end_ms") - F.col("start_ms"))
        .where("took_ms > 0")
        .agg(F.max(F.struct("took_ms", "segment")).alias("worst"))
    )
    what = F.when(
        F.col("worst").isNotNull(), F.format_string("milliseconds for %s", F.col("worst.segment"))
    ).otherwise("no snapshot in what was read tells: --starting-offsets snapshot reads the newest")
    return _row(took, SNAPSHOT_TIME, F.col("worst.took_ms"), what)


def _errors(log: DataFrame) -> DataFrame:
    """Bytes that do not check, and records that nobody can read."""
    broken = damaged(log).agg(F.count("*").alias("broken"), first_damage().alias("first"))
    what = F.when(
        F.col("broken") > 0, F.concat(F.lit("first of what is damaged: "), told_damage("first"))
    ).otherwise("every batch checks")
    return _row(broken, ERRORS, F.col("broken"), what)


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job."""
    del values
    return {"health": health(log)}
