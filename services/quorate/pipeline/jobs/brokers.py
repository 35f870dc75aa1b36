"""Job `brokers`: registrations, sessions, fenced intervals and flapping.

A session is the lifetime of one registration, identified by its broker epoch. A fenced interval may
span several sessions: a broker that restarts is fenced, registers, and is unfenced once it has
caught up.
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

from quorate.pipeline.jobs.log_rows import duration_ms, millis, rows_of, span_of, valid
from quorate.pipeline.jobs.transactions import committed_only

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
SCHEMAS: Final = {
    "events": StructType(
        [
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("broker_id", IntegerType()),
            StructField("broker_epoch", LongType()),
            StructField("event", StringType()),
            StructField("from_snapshot", BooleanType()),
        ]
    ),
    "sessions": StructType(
        [
            StructField("broker_id", IntegerType()),
            StructField("broker_epoch", LongType()),
            StructField("incarnation_id", StringType()),
            StructField("start", TimestampType()),
            StructField("end", TimestampType()),
            StructField("open", BooleanType()),
            StructField("duration_ms", LongType()),
            StructField("ended_by", StringType()),
            StructField("unfenced", TimestampType()),
            StructField("controlled_shutdown", TimestampType()),
            StructField("fence_count", LongType()),
            StructField("rack", StringType()),
            StructField("endpoints", _ENDPOINTS),
        ]
    ),
    "fencing": StructType(
        [
            StructField("broker_id", IntegerType()),
            StructField("broker_epoch", LongType()),
            StructField("cause", StringType()),
            StructField("start_offset", LongType()),
            StructField("start", TimestampType()),
            StructField("end_offset", LongType()),
            StructField("end", TimestampType()),
            StructField("open", BooleanType()),
            StructField("duration_ms", LongType()),
            StructField("ended_by", StringType()),
        ]
    ),
    "flapping": StructType(
        [
            StructField("broker_id", IntegerType()),
            StructField("start", TimestampType()),
            StructField("end", TimestampType()),
            StructField("fence_count", LongType()),
            StructField("most_in_window", LongType()),
        ]
    ),
    "totals": StructType(
        [
            StructField("broker_id", IntegerType()),
            StructField("registrations", LongType()),
            StructField("controlled_shutdowns", LongType()),
            StructField("fences", LongType()),
            StructField("flaps", LongType()),
            StructField("fenced_ms", LongType()),
            StructField("longest_ms", LongType()),
            StructField("is_fenced", BooleanType()),
            StructField("is_registered", BooleanType()),
        ]
    ),
}
RECORD_TYPES: Final = (
    "RegisterBrokerRecord",
    "BrokerRegistrationChangeRecord",
    "FenceBrokerRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
)
# `fenced` is a boolean in a registration and 1, -1 or missing in a change: a string fits both.
_PAYLOAD: Final = (
    "brokerId int, id int, brokerEpoch bigint, epoch bigint, incarnationId string, rack string,"
    " fenced string, inControlledShutdown string,"
    " endPoints array<struct<name: string, host: string, port: int>>"
)
_FENCED: Final = """case
    when record_type = 'FenceBrokerRecord' or said.fenced in ('true', '1') then 'fenced'
    when record_type = 'UnfenceBrokerRecord' or said.fenced in ('false', '-1') then 'unfenced'
    when record_type = 'UnregisterBrokerRecord' then 'gone'
end"""
_KIND: Final = """case record_type
    when 'RegisterBrokerRecord' then 'registered'
    when 'UnregisterBrokerRecord' then 'unregistered'
    else 'changed'
end"""
_EVENTS: Final = """filter(array(
    if(kind = 'changed', null, kind),
    if(is_stopping and kind = 'changed', 'controlled shutdown', null),
    if(kind = 'changed' and state in ('fenced', 'unfenced'), state, null)
), event -> event is not null)"""


def broker_events(log: DataFrame) -> DataFrame:
    """One row per event: registered, unfenced, fenced, controlled shutdown, unregistered."""
    return (
        _states(log)
        .withColumn("event", F.explode(F.expr(_EVENTS)))
        .select("offset", "timestamp", "broker_id", "broker_epoch", "event", "from_snapshot")
    )


def broker_sessions(log: DataFrame) -> DataFrame:
    """One row per registration; a registration from a snapshot has no `start`.

    `ended_by` is `registered again` or `unregistered`; `unfenced` is the first time.
    """
    past = _by_offset().rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_registration = F.col("kind") == "registered"
    is_change = F.col("kind") == "changed"
    sessions = (
        _states(log)
        .withColumn("session", F.count_if(is_registration).over(past))
        .groupBy("broker_id", "session")
        .agg(
            F.min("broker_epoch").alias("broker_epoch"),
            F.first(F.when(is_registration, F.col("said")), ignorenulls=True).alias("said"),
            F.min(F.when(is_registration & ~F.col("from_snapshot"), F.col("timestamp"))).alias(
                "start"
            ),
            F.max(F.when(F.col("kind") == "unregistered", F.col("timestamp"))).alias("gone"),
            _first_time(is_change & (F.col("state") == "unfenced")).alias("unfenced"),
            _first_time(is_change & F.col("is_stopping")).alias("controlled_shutdown"),
            F.count_if(is_change & (F.col("state") == "fenced")).alias("fence_count"),
        )
    )
    following = Window.partitionBy("broker_id").orderBy("session").rowsBetween(1, 1)
    ended = (
        sessions.withColumn("end", F.coalesce("gone", F.first("start").over(following)))
        .crossJoin(F.broadcast(span_of(log)))
        .withColumn("open", F.col("end").isNull())
    )
    reason = F.when(F.col("gone").isNotNull(), "unregistered").when(
        ~F.col("open"), "registered again"
    )
    return ended.select(
        "broker_id",
        "broker_epoch",
        F.col("said.incarnationId").alias("incarnation_id"),
        "start",
        "end",
        "open",
        duration_ms(F.col("start"), F.col("end")).alias("duration_ms"),
        reason.alias("ended_by"),
        "unfenced",
        "controlled_shutdown",
        "fence_count",
        F.col("said.rack").alias("rack"),
        F.col("said.endPoints").alias("endpoints"),
    )


def fenced_intervals(log: DataFrame) -> DataFrame:
    """One row per interval in which a broker was fenced, until unfenced or unregistered.

    `cause` is `registered` (the broker is new), `registered again` (it restarted before its session
    timed out), `controlled shutdown` or `session ended`; null for a broker fenced in a snapshot.
    """
    previous = _by_offset().rowsBetween(-1, -1)
    past = _by_offset().rowsBetween(Window.unboundedPreceding, Window.currentRow)
    following = _by_offset().rowsBetween(1, 1)
    cause = (
        F.when(F.col("from_snapshot"), None)
        .when((F.col("kind") == "registered") & (F.col("was") == "unfenced"), "registered again")
        .when(F.col("kind") == "registered", "registered")
        .when(F.col("stopping"), "controlled shutdown")
        .otherwise("session ended")
    )
    changed = (
        _states(log)
        .withColumn("stopping", F.last("is_stopping", ignorenulls=True).over(past))
        .where("state is not null")
        .withColumn("was", F.first("state").over(previous))
        .where("was is null or was <> state")
    )
    timed = (
        changed.withColumn("cause", cause)
        .withColumn("end_offset", F.first("offset").over(following))
        .withColumn("end", F.first("timestamp").over(following))
        .withColumn("next", F.first("state").over(following))
        .withColumn("start", F.when(~F.col("from_snapshot"), F.col("timestamp")))
        .where("state = 'fenced'")
        .crossJoin(F.broadcast(span_of(log)))
    )
    return timed.select(
        "broker_id",
        "broker_epoch",
        "cause",
        F.when(~F.col("from_snapshot"), F.col("offset")).alias("start_offset"),
        "start",
        "end_offset",
        "end",
        F.col("end_offset").isNull().alias("open"),
        duration_ms(F.col("start"), F.col("end")).alias("duration_ms"),
        F.when(F.col("next") == "gone", "unregistered")
        .when(F.col("next") == "unfenced", "unfenced")
        .alias("ended_by"),
    )


def flapping(log: DataFrame, *, window_ms: int, fence_count: int) -> DataFrame:
    """One row per period in which a broker that had been unfenced was fenced repeatedly.

    A fence counts if some window of `window_ms` around it has `fence_count` or more. Two fences
    that are further apart belong to different rows. `most_in_window` is the count of the worst
    window.
    """
    by_time = Window.partitionBy("broker_id").orderBy("start_ms")
    behind = by_time.rangeBetween(-window_ms, Window.currentRow)
    ahead = by_time.rangeBetween(Window.currentRow, window_ms)
    past = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    previous = by_time.rowsBetween(-1, -1)
    counted = (
        fenced_intervals(log)
        .where("start is not null and cause <> 'registered'")
        .withColumn("start_ms", millis("start"))
        .withColumn("in_window", F.count("*").over(behind))
        .withColumn("worst", F.max("in_window").over(ahead))
        .where(F.col("worst") >= fence_count)
        .withColumn("gap_ms", F.col("start_ms") - F.first("start_ms").over(previous))
        .withColumn("is_new", F.coalesce(F.col("gap_ms") > window_ms, F.lit(1).cast("boolean")))
        .withColumn("episode", F.count_if("is_new").over(past))
    )
    return (
        counted.groupBy("broker_id", "episode")
        .agg(
            F.min("start").alias("start"),
            F.max("start").alias("end"),
            F.count("*").alias("fence_count"),
            F.max("in_window").alias("most_in_window"),
        )
        .select("broker_id", "start", "end", "fence_count", "most_in_window")
    )


def broker_totals(tables: Mapping[str, DataFrame]) -> DataFrame:
    """One row per broker in the log, derived from the other tables of the job.

    `fences` does not count fencing at a first registration; `fenced_ms` is the total time fenced,
    including the time before the broker was first unfenced.
    """
    event = F.col("event")
    events = (
        tables["events"]
        .groupBy("broker_id")
        .agg(
            F.count_if((event == "registered") & ~F.col("from_snapshot")).alias("registrations"),
            F.count_if(event == "controlled shutdown").alias("controlled_shutdowns"),
        )
    )
    sessions = tables["sessions"].groupBy("broker_id").agg(F.bool_or("open").alias("is_registered"))
    fencing = (
        tables["fencing"]
        .groupBy("broker_id")
        .agg(
            F.count_if(F.col("cause") != "registered").alias("fences"),
            F.sum("duration_ms").alias("fenced_ms"),
            F.max("duration_ms").alias("longest_ms"),
            F.bool_or("open").alias("is_fenced"),
        )
    )
    flaps = tables["flapping"].groupBy("broker_id").agg(F.count("*").alias("flaps"))
    joined = events
    for other in (sessions, fencing, flaps):
        joined = joined.join(F.broadcast(other), "broker_id", "left")
    return joined.fillna(
        {
            "fences": 0,
            "flaps": 0,
            "fenced_ms": 0,
            "longest_ms": 0,
            "is_fenced": False,
            "is_registered": False,
        }
    ).select(*SCHEMAS["totals"].names)


def _states(log: DataFrame) -> DataFrame:
    """The broker state in each record; `state` is null if the record does not change it.

    `is_stopping` is null if the record does not change the controlled shutdown.
    """
    stopping = F.when(
        F.col("said.inControlledShutdown").isNotNull(),
        F.col("said.inControlledShutdown").isin("true", "1"),
    )
    return (
        committed_only(rows_of(log, RECORD_TYPES), valid(log))
        .withColumn("said", F.from_json("payload", _PAYLOAD))
        .select(
            "offset",
            "timestamp",
            "from_snapshot",
            F.coalesce("said.brokerId", "said.id").alias("broker_id"),
            F.coalesce("said.brokerEpoch", "said.epoch").alias("broker_epoch"),
            F.expr(_KIND).alias("kind"),
            F.expr(_FENCED).alias("state"),
            F.when(
                F.col("record_type") == "RegisterBrokerRecord",
                F.coalesce(stopping, F.expr("false")),
            )
            .otherwise(stopping)
            .alias("is_stopping"),
            "said",
        )
    )


def _first_time(condition: Column) -> Column:
    """The time of the first record with `condition`, by offset: clocks may go back."""
    return F.min_by("timestamp", F.when(condition, F.col("offset")))


def _by_offset() -> Window:
    return Window.partitionBy("broker_id").orderBy("offset")


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The tables of the job; `values` has `flap_window_s` and `flap_count`."""
    window_s, fence_count = values["flap_window_s"], values["flap_count"]
    assert isinstance(window_s, int)
    assert isinstance(fence_count, int)
    flaps = flapping(log, window_ms=1000 * window_s, fence_count=fence_count)
    found = {
        "events": broker_events(log).orderBy("offset", "broker_id", "event"),
        "sessions": broker_sessions(log).orderBy("broker_id", "broker_epoch"),
        "fencing": fenced_intervals(log).orderBy("broker_id", "start_offset"),
        "flapping": flaps.orderBy("broker_id", "start"),
    }
    totals = broker_totals(found).orderBy(F.desc("fenced_ms"), "broker_id")
    return {**found, "totals": totals}
