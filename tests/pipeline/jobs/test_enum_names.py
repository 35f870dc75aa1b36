"""Kafka's words for numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.jobs.enum_names import named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_number_without_a_word_stays_visible(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(2,), (9,), (None,)], "n int")
    words = [
        row.word for row in frame.select(named(F.col("n"), {2: "DENY"}).alias("word")).collect()
    ]
    assert words == ["DENY", "UNKNOWN(9)", None]
