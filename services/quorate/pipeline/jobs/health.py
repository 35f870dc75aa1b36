"""Job `health`: key metrics of a quorum derived from its log, against thresholds (docs/metrics.md).

Thresholds follow Kafka's conventions: above the threshold the verdict is `warn`, above ten times
the threshold `critical`. Two leaders of an epoch, damage and logs that break Raft's log matching
are always `critical`, and times that go back never are. A metric that the log does not contain is
`unknown`, with its source; one without a threshold has no verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from quorate.pipeline.jobs.compare import divergence, logs
from quorate.pipeline.jobs.damage_report import damage_message, first_damage
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
DIVERGENCE: Final = "LogMatchingViolationCount"
CLOCK: Final = "TimestampRegressionMs"
THRESHOLDS: Final = {
    LEADERS: 1.0,
    ELECTIONS: 1.0,
    END_OFFSET: None,
    LAG: 1000.0,
    SNAPSHOT_TIME: 10_000.0,
    ERRORS: 0.0,
    DIVERGENCE: 0.0,
    CLOCK: 1000.0,
}
CRITICAL_AT_ONCE: Final = (LEADERS, ERRORS, DIVERGENCE)
"""Metrics that are critical above their threshold, rather than above ten times as much."""
NEVER_CRITICAL: Final = (CLOCK,)
"""Metrics that are at most a warning: they affect readers of the log, but not the quorum."""
CRITICAL_FACTOR: Final = 10
RECENT_MS: Final = 86_400_000
"""The last day of a log, which determines the verdicts on elections and clocks."""
# Offsets whose times are compared together.
_RUN_OFFSETS: Final = 256
_HOUR_MS: Final = 3_600_000
_LEADER: Final = "leaderId int"
_ALONE: Final = "one log alone: name every voter's directory with --path"


def health(log: DataFrame, *, with_pairs: bool = True) -> DataFrame:
    """One row per metric: `verdict` is ok, warn, critical, unknown or null, `value` its number.

    `log` has the rows of all directories to check. Without `with_pairs` the metric DIVERGENCE is
    left out, because it needs a comparison of all records.
    """
    measured = (
        _leaders(log)
        .unionByName(_election_rate(log))
        .unionByName(_ends(log))
        .unionByName(_snapshot_time(log))
        .unionByName(_errors(log))
        .unionByName(_clock(log))
    )
    if with_pairs:
        measured = measured.unionByName(_divergence(log))
    threshold = F.lit(None).cast("double")
    for metric, bound in THRESHOLDS.items():
        threshold = F.when(F.col("metric") == metric, F.lit(bound)).otherwise(threshold)
    return measured.withColumn("threshold", threshold.cast("double")).select(
        "metric", _verdict().alias("verdict"), "value", "threshold", "what"
    )


def _verdict() -> Column:
    value, threshold = F.col("value"), F.col("threshold")
    is_critical_at_once = F.col("metric").isin(*CRITICAL_AT_ONCE)
    is_worse = ~F.col("metric").isin(*NEVER_CRITICAL) & (value > CRITICAL_FACTOR * threshold)
    return (
        F.when(value.isNull(), "unknown")
        .when(threshold.isNull(), F.lit(None))
        .when(value <= threshold, "ok")
        .when(is_critical_at_once | is_worse, "critical")
        .otherwise("warn")
    )


def _row(rows: DataFrame, metric: str, value: Column, what: Column) -> DataFrame:
    return rows.select(
        F.lit(metric).alias("metric"), value.cast("double").alias("value"), what.alias("what")
    )


def _leaders(log: DataFrame) -> DataFrame:
    """The largest number of leaders in any epoch: two are a split brain."""
    changes = valid(log).where("record_type = 'LeaderChangeMessage'")
    each = changes.groupBy("leader_epoch").agg(
        F.count_distinct(F.from_json("payload", _LEADER)["leaderId"]).alias("leaders")
    )
    worst = each.agg(F.max(F.struct("leaders", "leader_epoch")).alias("worst"))
    what = F.when(
        F.col("worst").isNotNull(),
        F.format_string("leaders in epoch %d, the most of any", F.col("worst.leader_epoch")),
    ).otherwise("no epoch begins in what was read: a log that reaches further back tells")
    return _row(worst, LEADERS, F.col("worst.leaders"), what)


def _election_rate(log: DataFrame) -> DataFrame:
    """The largest number of epochs that began within one hour of the log's last day.

    The text also names the worst hour of the complete log, which never improves. The first leader
    of a log does not count as an election.
    """
    at_ms = F.unix_millis("timestamp")
    change = F.col("record_type") == "LeaderChangeMessage"
    whole = Window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    hour = Window.orderBy("at_ms").rangeBetween(-_HOUR_MS, Window.currentRow)
    begun = (
        valid(log)
        .where(~is_snapshot())
        .groupBy("leader_epoch")
        .agg(
            F.min(F.when(change, F.col("offset"))).alias("offset"),
            F.min(F.when(change, at_ms)).alias("at_ms"),
            F.max(at_ms).alias("last_ms"),
        )
        .withColumn("is_recent", F.col("at_ms") > F.max("last_ms").over(whole) - RECENT_MS)
        .where("offset > 0")
    )
    one = F.struct("in_hour", "at_ms")
    worst = begun.withColumn("in_hour", F.count("*").over(hour)).agg(
        F.max(one).alias("worst"), F.max(F.when(F.col("is_recent"), one)).alias("recent")
    )
    in_log = F.format_string(
        "; in the whole log %d in the hour before %s",
        F.col("worst.in_hour"),
        _time(F.col("worst.at_ms")),
    )
    in_day = F.format_string(
        "elections in the hour before %s, the most of the last day", _time(F.col("recent.at_ms"))
    )
    what = (
        F.when(F.col("worst").isNull(), "no leader was elected after the first")
        .when(F.col("recent").isNull(), F.concat(F.lit("elections in the last day"), in_log))
        .when(F.col("recent") == F.col("worst"), F.concat(in_day, F.lit(" and of the whole log")))
        .otherwise(F.concat(in_day, in_log))
    )
    return _row(worst, ELECTIONS, F.coalesce("recent.in_hour", F.lit(0)), what)


def _time(milliseconds: Column) -> Column:
    return F.date_format(F.timestamp_millis(milliseconds), "yyyy-MM-dd'T'HH:mm:ss'Z'")


def _ends(log: DataFrame) -> DataFrame:
    """The end of the longest log, and the lag of the shortest."""
    ends = logs(log).agg(
        F.max("end_offset").alias("end_offset"),
        F.max(F.struct("lag", "node_id")).alias("worst"),
        F.count("end_offset").alias("log_count"),
    )
    what = F.when(
        F.col("log_count") > 1,
        F.format_string("records that node %d lacks, the most of any", F.col("worst.node_id")),
    ).otherwise(_ALONE)
    lag = F.when(F.col("log_count") > 1, F.col("worst.lag"))
    return _row(ends, END_OFFSET, F.col("end_offset"), F.lit("where the longest ends")).unionByName(
        _row(ends, LAG, lag, what)
    )


def _snapshot_time(log: DataFrame) -> DataFrame:
    """The time from a snapshot's header to its footer, by the clock of its writer.

    Kafka gives each the time when it is written; Quorate gives all records of a snapshot one time.
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
        .agg(
            F.max(F.when(F.col("took_ms") > 0, F.struct("took_ms", "segment"))).alias("worst"),
            F.count("*").alias("snapshot_count"),
        )
    )
    what = (
        F.when(
            F.col("worst").isNotNull(),
            F.format_string("milliseconds for %s", F.col("worst.segment")),
        )
        .when(
            F.col("snapshot_count") > 0,
            "Quorate writes one time into a whole snapshot: a controller's own metric tells",
        )
        .otherwise("no snapshot was read: --starting-offsets snapshot reads the newest")
    )
    return _row(took, SNAPSHOT_TIME, F.col("worst.took_ms"), what)


def _errors(log: DataFrame) -> DataFrame:
    """Bytes that fail verification, and records that do not decode."""
    broken = damaged(log).agg(F.count("*").alias("broken"), first_damage().alias("first"))
    what = F.when(
        F.col("broken") > 0, F.concat(F.lit("first of what is damaged: "), damage_message("first"))
    ).otherwise("every batch checks")
    return _row(broken, ERRORS, F.col("broken"), what)


def _clock(log: DataFrame) -> DataFrame:
    """The largest step back of record times in the log's last day.

    Timestamps come from each leader's own clock. Offsets are compared in runs: a step back and
    forward again within one run is not reported.
    """
    at_ms = F.unix_millis("timestamp").alias("at_ms")
    of_log = Window.partitionBy("source_node")
    in_front = of_log.orderBy("last.offset").rowsBetween(Window.unboundedPreceding, -1)
    runs = (
        valid(log)
        .where(~is_snapshot())
        .groupBy("source_node", "leader_epoch", F.floor(F.col("offset") / _RUN_OFFSETS))
        .agg(
            F.max(F.struct(at_ms, "offset")).alias("latest"),
            F.min(F.struct(at_ms, "offset")).alias("earliest"),
            F.max(F.struct("offset", at_ms)).alias("last"),
        )
        .withColumn("before", F.max("latest").over(in_front))
        .withColumn("end_ms", F.max("last").over(of_log)["at_ms"])
    )
    pairs = F.array(
        F.struct(F.col("before").alias("high"), F.col("earliest").alias("low")),
        F.struct(F.col("latest").alias("high"), F.struct("last.at_ms", "last.offset").alias("low")),
    )
    back_ms = F.col("high.at_ms") - F.col("low.at_ms")
    step = F.struct(back_ms.alias("back_ms"), "low.offset", F.col("high.offset").alias("from"))
    is_recent = F.col("low.at_ms") > F.col("end_ms") - RECENT_MS
    worst = (
        runs.select("end_ms", F.inline(pairs))
        .withColumn("step", F.when(back_ms > 0, step))
        .agg(
            F.max("end_ms").alias("end_ms"),
            F.max("step").alias("worst"),
            F.max(F.when(is_recent, F.col("step"))).alias("recent"),
        )
    )
    in_log = F.format_string(
        "; in the whole log %d from offset %d back to offset %d",
        *(F.col(f"worst.{name}") for name in ("back_ms", "from", "offset")),
    )
    in_day = F.format_string(
        "milliseconds from offset %d back to offset %d, the most of the last day",
        *(F.col(f"recent.{name}") for name in ("from", "offset")),
    )
    what = (
        F.when(F.col("end_ms").isNull(), "no record of the log was read")
        .when(F.col("worst").isNull(), "no record has an earlier time than one in front of it")
        .when(
            F.col("recent").isNull(), F.concat(F.lit("no time of the last day goes back"), in_log)
        )
        .when(F.col("recent") == F.col("worst"), F.concat(in_day, F.lit(" and of the whole log")))
        .otherwise(F.concat(in_day, in_log))
    )
    value = F.when(F.col("end_ms").isNotNull(), F.coalesce("recent.back_ms", F.lit(0)))
    return _row(worst, CLOCK, value, what)


def _divergence(log: DataFrame) -> DataFrame:
    """Pairs of logs that break log matching: one of the two lost or changed committed records."""
    is_broken = F.col("breaks_log_matching")
    pairs = divergence(log).agg(
        F.count("*").alias("pair_count"),
        F.count_if(is_broken).alias("broken"),
        F.min(F.when(is_broken, F.struct("first_offset", "node_id", "other_id"))).alias("first"),
    )
    what = (
        F.when(F.col("pair_count") == 0, _ALONE)
        .when(F.col("broken") == 0, "no two logs differ below an epoch that both have")
        .otherwise(
            F.format_string(
                "pairs of logs; nodes %d and %d differ at offset %d, below an epoch that both have",
                F.col("first.node_id"),
                F.col("first.other_id"),
                F.col("first.first_offset"),
            )
        )
    )
    return _row(pairs, DIVERGENCE, F.when(F.col("pair_count") > 0, F.col("broken")), what)


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job."""
    del values
    return {"health": health(log)}
