"""--columns, --where, --order-by and --rows on the tables of a job.

A condition is Spark SQL over all columns of the table, including those that are not shown.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    QueryContextType,
)
from pyspark.sql import functions as F

from quorate.pipeline.jobs.registry import PipelineError
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NO_COLUMN: Final = "UNRESOLVED_COLUMN"
# The name that Spark gives to a kind of error.
_CONDITION: Final = re.compile(r"^\[[A-Z0-9_.]+\] ")
_PLACE: Final = re.compile(r"( SQLSTATE: \w+)?(;? ?\(?line \d+,? pos \d+\)?)?;?$")


@value_type
class TableFilter:
    """The filter of one table; `order` has names, with True for descending. Empty: no change."""

    columns: tuple[str, ...] = ()
    where: str | None = None
    order: tuple[tuple[str, bool], ...] = ()


def parse_filter(arguments: argparse.Namespace, tables: Mapping[str, StructType]) -> TableFilter:
    """Parse the filter for the one table that is shown.

    Raises PipelineError if there are several tables, or a column does not exist.
    """
    asked = {
        "--columns": arguments.columns,
        "--where": arguments.where,
        "--order-by": arguments.order_by,
    }
    flag = next((flag for flag, value in asked.items() if value is not None), None)
    if flag is None:
        return TableFilter()
    if len(tables) > 1:
        raise PipelineError(f"{flag}: it is for one table: name --table {', '.join(tables)}")
    (schema,) = tables.values()
    columns = tuple(_names(arguments.columns))
    order = tuple(_direction(words) for words in _names(arguments.order_by))
    _check_known("--columns", columns, schema)
    _check_known("--order-by", (name for name, _ in order), schema)
    return TableFilter(columns, arguments.where, order)


def check_condition(spark: SparkSession, table_filter: TableFilter, schema: StructType) -> None:
    """Raise PipelineError as `narrowed` does, before the rows of the table are computed."""
    if table_filter.where is not None:
        apply_filter(spark.createDataFrame([], schema), table_filter)


def apply_filter(table: DataFrame, table_filter: TableFilter) -> DataFrame:
    """Apply the filter; ties in the order are sorted by all columns.

    Raises PipelineError if Spark cannot parse the condition.
    """
    shown = table
    if table_filter.where is not None:
        try:
            shown = shown.where(table_filter.where)
        except (AnalysisException, ParseException) as error:
            raise PipelineError(_misunderstood(error, table.columns)) from error
    if table_filter.order:
        asked = [
            F.col(name).desc_nulls_last() if is_down else F.col(name).asc_nulls_last()
            for name, is_down in table_filter.order
        ]
        shown = shown.orderBy(*asked, *table.columns)
    return shown.select(*(table_filter.columns or table.columns))


@contextmanager
def condition_told(table_filter: TableFilter) -> Iterator[None]:
    """Raise PipelineError if Spark cannot evaluate the condition for a row read in the block."""
    try:
        yield
    except PySparkException as error:
        part = _part_at_fault(error, table_filter.where or "")
        if part is None:
            raise
        # The remedy is between the fault and settings that the command does not have.
        said, *more = _PLACE.sub("", _CONDITION.sub("", str(error).splitlines()[0])).split(". ")
        remedies = [sentence for sentence in more if sentence.startswith("Use `")]
        told = ". ".join([said, *remedies])
        raise PipelineError(f"--where: {part}: {told.rstrip('. ')}") from error


def _part_at_fault(error: PySparkException, where: str) -> str | None:
    """The part of the condition that an error is about; None for other errors."""
    contexts = error.getQueryContext()
    parts = [each.fragment() for each in contexts if each.contextType() is QueryContextType.SQL]
    return next((part for part in parts if part and part in where), None)


def _misunderstood(error: PySparkException, columns: Iterable[str]) -> str:
    """The message for a condition that Spark rejects, without the plan that it quotes."""
    if (error.getCondition() or "").startswith(_NO_COLUMN):
        name = (error.getMessageParameters() or {}).get("objectName", "").replace("`", "")
        return _no_column("--where", name, columns)
    # Spark's first line ends with the position; the query plan follows.
    said = _PLACE.sub("", str(error).strip().splitlines()[0])
    return f"--where: {said.rstrip(';. ')}; the table has {', '.join(columns)}"


def _no_column(flag: str, name: str, columns: Iterable[str]) -> str:
    return f"{flag}: there is no column {name!r}: the table has {', '.join(columns)}"


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",")]


def _direction(words: str) -> tuple[str, bool]:
    name, _, way = words.partition(" ")
    if way.strip().lower() not in ("", "asc", "desc"):
        raise PipelineError(f"--order-by: {words!r}: behind a column may stand asc or desc")
    return name, way.strip().lower() == "desc"


def _check_known(flag: str, names: Iterable[str], schema: StructType) -> None:
    for name in names:
        if name not in schema.names:
            raise PipelineError(_no_column(flag, name, schema.names))
