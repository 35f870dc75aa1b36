"""A log read once for several tables: rows of some types, kept by Spark, and where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from quorate.pipeline.jobs.effective import effective
from quorate.pipeline.jobs.log_rows import in_log_time, valid
from quorate.pipeline.jobs.payloads import column_of, of_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def kept(log: DataFrame, *records: type) -> DataFrame:
    """The valid rows of those types that took effect, with typed columns, read now and once.

    One more row without a type has the last timestamp of the whole log, which open intervals last
    to. What is kept goes to the disk where it is more than the memory takes.
    """
    seen = Observation()
    last_ms = F.max(F.unix_millis("timestamp")).alias("last_ms")
    timed = in_log_time(valid(log), log)
    # What an aborted transaction wrote last is where the log ends, too.
    rows = effective(timed.observe(seen, last_ms), timed)
    slim = of_types(rows, *records).select(
        "offset", "timestamp", "is_control", "record_type", *map(column_of, records)
    )
    slim = slim.persist()
    slim.count()
    end = slim.sparkSession.range(1).select(
        F.timestamp_millis(F.lit(seen.get["last_ms"])).alias("timestamp"),
        F.lit(False).alias("is_control"),
    )
    return slim.unionByName(end, allowMissingColumns=True)
