"""Job `features`: finalized levels of metadata.version, kraft.version and others over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from quorate.pipeline.jobs.log_rows import rows_of, valid
from quorate.pipeline.jobs.transactions import committed_only

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

FEATURES_SCHEMA: Final = T.StructType(
    [
        T.StructField("offset", T.LongType()),
        T.StructField("timestamp", T.TimestampType()),
        T.StructField("epoch", T.IntegerType()),
        T.StructField("feature", T.StringType()),
        T.StructField("level", T.IntegerType()),
        T.StructField("previous_level", T.IntegerType()),
    ]
)
KRAFT_VERSION: Final = "kraft.version"
RECORD_TYPES: Final = ("FeatureLevelRecord", "KRaftVersionRecord")
_PAYLOAD: Final = "name string, featureLevel int, kRaftVersion int"


def feature_levels(log: DataFrame) -> DataFrame:
    """One row for each change of a feature's level (FEATURES_SCHEMA).

    A level of 0 means that the feature is not finalized any more. `previous_level` is null for the
    first level in the log; if that level is from a snapshot, offset and time are null as well.
    """
    before = Window.partitionBy("feature").orderBy("offset").rowsBetween(-1, -1)
    is_of_log = ~F.col("from_snapshot")
    told = (
        committed_only(rows_of(log, RECORD_TYPES), valid(log))
        .withColumn("said", F.from_json("payload", _PAYLOAD))
        .withColumn("feature", F.coalesce("said.name", F.lit(KRAFT_VERSION)))
        .withColumn("level", F.coalesce("said.featureLevel", "said.kRaftVersion"))
        .withColumn("previous_level", F.first("level").over(before))
        .where("not level <=> previous_level")
    )
    return told.select(
        F.when(is_of_log, F.col("offset")).alias("offset"),
        F.when(is_of_log, F.col("timestamp")).alias("timestamp"),
        F.col("leader_epoch").alias("epoch"),
        "feature",
        "level",
        "previous_level",
    )


SCHEMAS: Final = {"features": FEATURES_SCHEMA}


def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]:
    """The table of the job, in the order of the log."""
    del values
    return {"features": feature_levels(log).orderBy("offset", "feature")}
