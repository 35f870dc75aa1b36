from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs.output import (
    aligned,
    check_output,
    check_place,
    iso,
    text_of,
    write_tables,
)
from quorate.pipeline.jobs.registry import PipelineError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [(1, NOON, [1, 2], None), (20, None, [], "b,c")],
        "id int, start timestamp, voters array<int>, name string",
    )


def test_text_has_aligned_columns_and_says_where_it_ends(
    table: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tables({"one": table.orderBy("id")}, "table", None, 200)
    assert capsys.readouterr().out == (
        "id  start                     voters  name\n"
        " 1  2026-11-20T12:00:00.000Z  1,2     -\n"
        "20  -                                 b,c\n"
    )
    write_tables({"one": table, "two": table}, "table", None, 1)
    out = capsys.readouterr().out
    assert out.startswith("one\n")
    assert "\n\ntwo\n" in out
    assert out.count("... more than 1 rows") == 2


def test_what_a_log_says_begins_no_line_and_moves_no_cursor(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    table = spark.createDataFrame([("a\nb\x1b[2J", ["c\rd"])], "name string, more array<string>")
    write_tables({"one": table}, "table", None, 200)
    line = capsys.readouterr().out.splitlines()[1]
    assert line == r"a\nb\x1b[2J  c\rd"


def test_json_is_a_line_a_row(table: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    write_tables({"one": table.orderBy("id")}, "json", None, 200)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {
        "table": "one",
        "id": 1,
        "start": "2026-11-20T12:00:00.000Z",
        "voters": [1, 2],
        "name": None,
    }


def test_csv_has_the_names_above(table: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    write_tables({"one": table.orderBy("id")}, "csv", None, 200)
    assert list(csv.reader(capsys.readouterr().out.splitlines())) == [
        ["id", "start", "voters", "name"],
        ["1", "2026-11-20T12:00:00.000Z", "1,2", ""],
        ["20", "", "", "b,c"],
    ]


def test_a_directory_gets_a_directory_a_table(
    spark: SparkSession, table: DataFrame, tmp_path: Path
) -> None:
    write_tables({"one": table}, "parquet", str(tmp_path / "p"), 200)
    back = spark.read.parquet(str(tmp_path / "p" / "one"))
    assert sorted(back.collect()) == sorted(table.collect())
    write_tables({"one": table}, "csv", str(tmp_path / "c"), 200)
    flat = spark.read.option("header", "true").csv(str(tmp_path / "c" / "one"))
    assert {row.voters for row in flat.collect()} == {"[1,2]", "[]"}


def test_what_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(PipelineError, match=r"^--output: --format parquet needs"):
        check_output(["one"], "parquet", None)
    with pytest.raises(
        PipelineError, match=r"^--table: CSV on stdout is one table: name one of one, two"
    ):
        check_output(["one", "two"], "csv", None)
    with pytest.raises(PipelineError, match=r"^--format: "):
        check_output(["one"], "table", str(tmp_path))
    with pytest.raises(PipelineError, match="one exists"):
        check_output(["one"], "csv", str(tmp_path))
    check_output(["two"], "csv", str(tmp_path))


@pytest.mark.parametrize("place", ["a:b", "a:b/c", "2026-01-05T10:00", "file:lake"])
def test_a_colon_that_spark_takes_for_that_of_a_url_is_refused(place: str) -> None:
    with pytest.raises(PipelineError, match=rf"^--output: {place}: .* write \./{place}$"):
        check_place("--output", place)


@pytest.mark.parametrize("place", ["./a:b", "/a:b", "s3a://bucket/lake", "file:/lake", "lake"])
def test_other_places_are_taken(place: str) -> None:
    check_place("--output", place)


def test_cells_as_text() -> None:
    assert [
        text_of(cell) for cell in (None, True, 2 / 3, 10_000.0, NOON, [1, 2], [{"a": NOON}])
    ] == [
        "-",
        "yes",
        "0.6667",
        "10000",
        iso(NOON),
        "1,2",
        '[{"a":"2026-11-20T12:00:00.000Z"}]',
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert aligned(["a", "bb"], [], [True, False]) == "a  bb\n"


def test_a_file_of_json_has_what_is_not_there_as_null(table: DataFrame, tmp_path: Path) -> None:
    write_tables({"one": table.coalesce(1)}, "json", str(tmp_path), 200)
    (file,) = (tmp_path / "one").glob("part-*.json")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [list(row) for row in rows] == [["id", "start", "voters", "name"]] * 2
    assert rows[0]["name"] is None
