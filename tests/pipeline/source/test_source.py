"""The data source as Spark loads it."""

from __future__ import annotations

from pyspark_quorate import DefaultSource
from quorate.pipeline.source.source import KraftDataSource


def test_spark_finds_it_by_the_name_of_its_package() -> None:
    assert DefaultSource is KraftDataSource
    assert KraftDataSource.name() == "kraft"


def test_the_schema_follows_the_options() -> None:
    source = KraftDataSource(options={"path": "x", "columns": "offset"})
    assert source.schema() == "offset bigint"
