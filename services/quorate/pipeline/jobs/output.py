"""Prints or writes the tables of a job: text, JSON lines, CSV, Parquet.

Text and JSON go to stdout unless a directory is named; Parquet needs one. In the directory each
table is a directory of files as Spark writes them. Times are UTC, in ISO 8601 with milliseconds.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, NumericType, StructType

from quorate.pipeline.jobs.progress import Progress, show
from quorate.pipeline.jobs.registry import PipelineError
from quorate.pipeline.source.options import URL
from quorate.process.output_encoding import json_for_stdout
from quorate.records.escaping import escape_unprintable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

_NESTED: Final = (ArrayType, MapType, StructType)
TIMES: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
NOTHING: Final = "-"
# Every JSON row has all columns, including those with null, as on stdout.
_WRITTEN: Final = {"header": "true", "timestampFormat": TIMES, "ignoreNullFields": "false"}


def check_place(flag: str, place: str) -> None:
    """Raise PipelineError for a path that Spark would parse as a URL because of a colon."""
    name = place.partition("/")[0]
    if ":" in name and URL.match(place) is None:
        raise PipelineError(
            f"{flag}: {place}: Spark takes what is in front of the colon for a scheme, as in"
            f" s3a://; write ./{place}"
        )


def check_output(names: Sequence[str], form: str, directory: str | None) -> None:
    """Raise PipelineError if the flags conflict or the output exists."""
    if directory is None:
        if form == "parquet":
            raise PipelineError("--output: --format parquet needs a directory to write to")
        if form == "csv" and len(names) > 1:
            raise PipelineError(
                f"--table: CSV on stdout is one table: name one of {', '.join(names)},"
                " or --output DIR for all"
            )
        return
    check_place("--output", directory)
    if form == "table":
        raise PipelineError(f"--format: with --output {directory} it is json, csv or parquet")
    for name in names:
        if os.path.lexists(f"{directory}/{name}"):
            raise PipelineError(f"--output: {directory}/{name} exists: name another, or remove it")


def write_tables(
    tables: Mapping[str, DataFrame],
    form: str,
    directory: str | None,
    rows_max: int,
    shown: Progress | None = None,
) -> None:
    """Show or write the tables in `form`, at most `rows_max` rows of each as text.

    The flags must have been checked.
    """
    parts = (shown or Progress()).each(tables)
    if directory is not None:
        for name, table in parts:
            writer = (flat(table) if form == "csv" else table).write.options(**_WRITTEN)
            writer.format(form).save(f"{directory}/{name}")
        return
    match form:
        case "table":
            _print_text(parts, rows_max, is_titled=len(tables) > 1)
        case "json":
            _print_json(parts)
        case _:
            _print_csv(parts)


def _print_json(tables: Iterable[tuple[str, DataFrame]]) -> None:
    for name, table in tables:
        for row in table.toLocalIterator():
            told = {"table": name} | _plain(row.asDict(recursive=True))
            sys.stdout.write(json_for_stdout(told) + "\n")


def _print_csv(tables: Iterable[tuple[str, DataFrame]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for _, table in tables:
        writer.writerow(table.columns)
        for row in table.toLocalIterator():
            writer.writerow("" if cell is None else text_of(cell) for cell in row)


def flat(table: DataFrame) -> DataFrame:
    """Convert lists and structs to JSON, because CSV has neither."""
    return table.select(
        *(
            F.to_json(field.name, {"timestampFormat": TIMES}).alias(field.name)
            if isinstance(field.dataType, _NESTED)
            else F.col(field.name)
            for field in table.schema.fields
        )
    )


# --- text -----------------------------------------------------------------------------------------


def _print_text(tables: Iterable[tuple[str, DataFrame]], rows_max: int, *, is_titled: bool) -> None:
    for at, (name, table) in enumerate(tables):
        # Text from a log must not move the cursor or start a new line.
        rows = [
            [escape_unprintable(text_of(cell)) for cell in row] for row in table.head(rows_max + 1)
        ]
        gap = "\n" if at else ""
        title = f"{gap}{name}\n" if is_titled else ""
        right = [isinstance(field.dataType, NumericType) for field in table.schema.fields]
        show("")
        sys.stdout.write(title + aligned(table.columns, rows[:rows_max], right))
        if len(rows) > rows_max:
            sys.stdout.write(
                f"... more than {rows_max} rows: --rows shows more, --format csv all of them\n"
            )


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Lines with a header and two spaces between columns; numbers are right-aligned."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    lines = []
    for cells in (columns, *rows):
        padded = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(cells, widths, right, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return "".join(f"{line}\n" for line in lines)


def text_of(cell: object) -> str:
    """A cell as text: times in UTC, lists with commas, `-` for null."""
    match cell:
        case None:
            return NOTHING
        case bool():
            return "yes" if cell else "no"
        case float():
            return str(round(cell, 4)).removesuffix(".0")
        case datetime():
            return iso(cell)
        case list() if not any(isinstance(part, list | tuple | dict) for part in cell):
            return ",".join(map(text_of, cell))
        case list() | tuple() | dict():
            return json.dumps(_json(cell), ensure_ascii=False, separators=(",", ":"))
    return str(cell)


def iso(moment: datetime) -> str:
    """Format as 2026-11-20T08:00:00.000Z. Spark returns local time without a zone."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    return {name: _json(cell) for name, cell in row.items()}


def _json(cell: object) -> object:
    match cell:
        case datetime():
            return iso(cell)
        case dict():
            return _plain(cell)
        case tuple() if hasattr(cell, "asDict"):
            return _plain(cell.asDict())
        case list() | tuple():
            return _each(cell)
    return cell


def _each(cells: Iterable[object]) -> list[object]:
    return [_json(cell) for cell in cells]
