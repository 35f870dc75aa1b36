"""The data source as Spark loads it."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType, TimestampType

from pyspark_quorate import DefaultSource
from quorate.pipeline.source.arrow_schema import arrow_schema
from quorate.pipeline.source.batch_reader import KraftReader, PushingReader
from quorate.pipeline.source.data_source import KraftDataSource
from quorate.pipeline.source.frame_schema import COLUMNS, TYPED, column_name, plain_value
from quorate.records.codec.schema import schema_of, shapes_of
from quorate.records.metadata import encode_record
from tests.pipeline.source.logs import START_MS, LogWriter, paths_of, small_log

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from quorate.records.codec.schema import Field, Struct

# What a narrower type or a signed one would not hold.
EXTREMES: Final[dict[str, object]] = {
    "bool": True,
    "int8": -(2**7),
    "int16": -(2**15),
    "uint16": 2**16 - 1,
    "int32": -(2**31),
    "uint32": 2**32 - 1,
    "int64": -(2**63),
    "float64": 0.1,
    "uuid": bytes(range(240, 256)),
    "string": "Grüße\0<&>",
    "bytes": b"\x00\xff",
}


def full(field: Field, version: int, shapes: dict[str, type]) -> object:
    """Two elements where there may be many, and nothing left out."""
    one: object
    if field.struct is None:
        one = EXTREMES[field.element]
    else:
        one = record_of(shapes[field.element], field.struct, version, shapes, is_full=True)
    return (one, one) if field.is_array else one


def sparse(field: Field, version: int, shapes: dict[str, type]) -> object:
    """None where that may be, and no elements."""
    if version in field.nullable:
        return None
    return () if field.is_array else full(field, version, shapes)


def record_of(
    cls: type, struct: Struct, version: int, shapes: dict[str, type], *, is_full: bool
) -> Any:  # noqa: ANN401 - an instance of cls
    """A record of a type, or a structure in one."""
    fill = full if is_full else sparse
    wired = [field for field in struct.fields if version in field.versions]
    return cls(**{field.name: fill(field, version, shapes) for field in wired})


def test_spark_finds_it_by_the_name_of_its_package() -> None:
    assert DefaultSource is KraftDataSource
    assert KraftDataSource.name() == "kraft"


def test_the_schema_follows_the_options() -> None:
    source = KraftDataSource(options={"path": "x", "columns": "offset"})
    assert source.schema() == "offset bigint"


@pytest.mark.parametrize(
    ("given", "kind"), [({}, KraftReader), ({"pushdown": "true"}, PushingReader)]
)
def test_filters_are_taken_by_those_that_are_to(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], kind: type
) -> None:
    source = KraftDataSource(options={"path": "x", **given})
    assert type(source.reader(StructType())) is KraftReader
    monkeypatch.setitem(sys.modules, "pyspark.sql.worker.data_source_pushdown_filters", sys)
    assert type(source.reader(StructType())) is kind


def test_a_frame_gives_all_rows_where_spark_hands_filters_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark answers each query of a frame from what was planned for the filters of the first."""
    reader = spark.read.format("kraft").option("path", str(small_log(tmp_path / "c").root))
    topics, partitions = (f"record_type = '{name}Record'" for name in ("Topic", "Partition"))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        log = reader.load()
        found = log.where(topics).unionByName(log.where(partitions)).collect()
        counts = {"TopicRecord": 3, "PartitionRecord": 16}
        assert Counter(row.record_type for row in found) == counts
        assert [log.where(f"offset < {end}").count() for end in (5, 9)] == [5, 9]
        assert log.count() == 21
        assert reader.option("pushdown", "true").load().where(topics).count() == 3
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_session_sees_every_type_as_the_batches_have_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = LogWriter(tmp_path / "c")
    log.lead(1)
    records = []
    for is_full in (True, False):
        for cls in TYPED.values():
            schema = schema_of(cls)
            version = schema.versions.last
            record = record_of(cls, schema.body, version, shapes_of(cls), is_full=is_full)
            log.write([encode_record(record, version)])
            records.append(record)
    options = {"path": str(log.root), "recordTypes": ",".join(TYPED)}
    frame = spark.read.format("kraft").options(**options).load()
    assert frame.schema == from_arrow_schema(arrow_schema(COLUMNS, TYPED))
    found = {row.offset: row.asDict(recursive=True) for row in frame.collect()}
    assert sorted(found) == list(range(len(records) + 1))
    for offset, record in enumerate(records, start=1):
        cls, row = type(record), found[offset]
        assert (row["record_type"], row["value"] is None) == (cls.__name__, False)
        typed = {name: row[column_name(name)] for name in TYPED}
        others = dict.fromkeys(TYPED)
        assert typed == others | {cls.__name__: plain_value(record, schema_of(cls).body)}


def test_times_have_a_zone_where_the_session_prefers_those_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    reader = spark.read.format("kraft").option("path", str(small_log(tmp_path / "c").root))
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        log = reader.option("columns", "timestamp").load()
        assert log.schema == StructType([StructField("timestamp", TimestampType())])
        assert log.where(f"unix_millis(timestamp) = {START_MS}").count() == 1
    finally:
        spark.conf.unset("spark.sql.timestampType")


def test_a_table_may_be_made_of_it(spark: SparkSession, tmp_path: Path) -> None:
    """Spark passes the properties of a table along with its options, and neither for a query."""
    one, other = small_log(tmp_path / "a"), small_log(tmp_path / "b", node_id=2)
    given = {"path": paths_of(one, other), "columns": "offset", "recordTypes": "TopicRecord"}
    words = ", ".join(f"'{name}' '{value}'" for name, value in given.items())
    more = "COMMENT 'a log' TBLPROPERTIES ('team' = 'x')"
    spark.sql(f"CREATE TABLE of_both USING kraft OPTIONS ({words}) {more}")
    spark.sql(f"CREATE TABLE of_one USING kraft LOCATION '{one.root}'")
    try:
        table = spark.table("of_both")
        assert table.columns == ["offset", "topic_record"]
        assert table.count() == 42
        assert table.where("topic_record is not null").count() == 6
        late = spark.sql("SELECT * FROM of_both WITH (startingOffsets = '20')")
        assert late.count() == 2
        stream = spark.readStream.table("of_one").writeStream.format("memory").queryName("rows")
        stream.trigger(availableNow=True).start().awaitTermination()
        assert spark.table("of_one").columns == list(COLUMNS)
        assert spark.table("rows").count() == 21
    finally:
        for name in ("of_both", "of_one"):
            spark.sql(f"DROP TABLE {name}")
    with pytest.raises(PySparkException, match=r"OptionError: column: .*; columns is meant\?"):
        spark.sql(f"CREATE TABLE of_c USING kraft OPTIONS (path '{one.root}', column 'offset')")


def test_what_a_stream_cannot_take_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """PySpark would replace an error that is raised as it makes the reader."""
    log = small_log(tmp_path / "c")
    options = {"path": str(log.root), "endingOffsets": "5"}
    stream = spark.readStream.format("kraft").options(**options).load()
    query = stream.writeStream.format("noop").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match="endingOffsets: a stream has no end"):
        query.start().awaitTermination()
