from __future__ import annotations

import argparse
import re
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql.types import IntegerType, MapType, StringType, StructField, StructType

from quorate.pipeline.jobs.registry import JOBS, PipelineError
from quorate.pipeline.jobs.table_filters import (
    TableFilter,
    apply_filter,
    check_condition,
    condition_told,
    parse_filter,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = StructType([StructField("epoch", IntegerType()), StructField("end", StringType())])


def flags(
    columns: str | None = None, where: str | None = None, order_by: str | None = None
) -> argparse.Namespace:
    return argparse.Namespace(columns=columns, where=where, order_by=order_by)


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "b"), (2, None), (3, "b"), (4, "a")], SCHEMA)


def values(table: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in table.collect()]


def test_without_flags_a_table_stays_as_it_is(table: DataFrame) -> None:
    narrowing = parse_filter(flags(), {"one": SCHEMA, "two": SCHEMA})
    assert narrowing == TableFilter()
    assert values(apply_filter(table, narrowing)) == [(1, "b"), (2, None), (3, "b"), (4, "a")]


def test_a_condition_may_name_what_is_not_shown(table: DataFrame) -> None:
    narrowing = parse_filter(flags(columns="end", where="epoch in (1, 4)"), {"one": SCHEMA})
    assert values(apply_filter(table, narrowing)) == [("b",), ("a",)]


def test_columns_come_in_the_order_that_was_asked_for(table: DataFrame) -> None:
    narrowing = parse_filter(flags(columns="end, epoch", where="epoch = 4"), {"one": SCHEMA})
    assert apply_filter(table, narrowing).columns == ["end", "epoch"]


@pytest.mark.parametrize(
    ("order_by", "epochs"), [("end", [4, 1, 3, 2]), ("end DESC, epoch desc", [3, 1, 4, 2])]
)
def test_what_is_not_there_is_sorted_last_and_equals_by_all_columns(
    table: DataFrame, order_by: str, epochs: list[int]
) -> None:
    narrowing = parse_filter(flags(order_by=order_by), {"one": SCHEMA})
    assert [row[0] for row in values(apply_filter(table, narrowing))] == epochs


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (flags(columns="nobody"), "--columns: there is no column 'nobody': the table has epoch, e"),
        (flags(order_by="epoch up"), "--order-by: 'epoch up': behind a column may stand asc"),
        (flags(order_by="nobody desc"), "--order-by: there is no column 'nobody'"),
    ],
)
def test_what_a_table_does_not_have_is_told_with_what_it_has(
    asked: argparse.Namespace, words: str
) -> None:
    with pytest.raises(PipelineError, match=words):
        parse_filter(asked, {"one": SCHEMA})


def test_of_several_tables_one_has_to_be_named() -> None:
    with pytest.raises(PipelineError, match="--where: it is for one table: name --table one, two"):
        parse_filter(flags(where="epoch = 1"), {"one": SCHEMA, "two": SCHEMA})


@pytest.mark.parametrize("where", ["epoch =", "epoch", "nosuch(epoch)"])
def test_a_condition_that_spark_does_not_understand_is_one_line(
    table: DataFrame, where: str
) -> None:
    with pytest.raises(PipelineError, match=r"^--where: .*; the table has epoch, end$") as caught:
        apply_filter(table, TableFilter(where=where))
    assert "\n" not in str(caught.value)
    assert "line 1" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["nope", "the.end"])
def test_a_column_that_a_condition_misspells_is_named_before_a_row_is_read(
    spark: SparkSession, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    words = f"--where: there is no column '{name}': the table has epoch, end"
    with pytest.raises(PipelineError, match=f"^{words}$"):
        check_condition(spark, TableFilter(where=f"{name} > 3"), SCHEMA)
    # PySpark would log the error by itself, with the plan.
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("1 / 0 > 2", "1 / 0: Division by zero. Use `try_divide` to tolerate divisor being 0"),
        (
            "epoch > 0 and cast(end as int) = 3",
            'cast(end as int): The value \'b\' of the type "STRING" cannot be cast to "INT" because'
            " it is malformed. Use `try_cast` to tolerate malformed input",
        ),
        ("end > 5", 'end > 5: The value \'b\' of the type "STRING" cannot be cast to "BIGINT"'),
    ],
)
def test_a_condition_that_fails_for_a_row_is_one_line_with_the_part_at_fault(
    table: DataFrame, where: str, words: str
) -> None:
    narrowing = TableFilter(where=where)
    with (
        pytest.raises(PipelineError, match=f"^--where: {re.escape(words)}") as caught,
        condition_told(narrowing),
    ):
        apply_filter(table, narrowing).collect()
    said = str(caught.value)
    assert "\n" not in said
    assert "SQLSTATE" not in said
    assert "ansi" not in said


def test_an_error_of_something_else_is_not_put_on_the_condition(table: DataFrame) -> None:
    narrowing = TableFilter(where="epoch > 0")
    broken = table.selectExpr("1 / (epoch - epoch) as ratio", "epoch", "end")
    with pytest.raises(ArithmeticException), condition_told(narrowing):
        apply_filter(broken, narrowing).collect()


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.tables])
def test_every_column_can_be_sorted_by(name: str) -> None:
    for schema in import_module(JOBS[name].module).SCHEMAS.values():
        assert not any(isinstance(field.dataType, MapType) for field in schema.fields)
