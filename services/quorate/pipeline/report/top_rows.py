"""First rows of a table for the page, with the number of rows left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quorate.pipeline.jobs.health import RECENT_MS
from quorate.pipeline.report.formatting import format_int
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

ROWS_MAX: Final = 15
BARS_MAX: Final = 20
LANES_MAX: Final = 40
MARKS_MAX: Final = 400
RECENT: Final = timedelta(milliseconds=RECENT_MS)
"""The time before a log's end that determines verdicts on events, which would never expire."""


@value_type
class TopRows:
    """The first rows of a table in some order, and its total number of rows."""

    rows: list[Row]
    row_count: int

    @property
    def omitted_note(self) -> str:
        """The plot's note about the rows that are not in it."""
        more = self.row_count - len(self.rows)
        return f" ({format_int(more)} shorter ones are left out)" if more else ""


def top(table: DataFrame, count: int, *order: Column | str) -> TopRows:
    """The first `count` rows in that order; ties are sorted by all columns, as with --order-by."""
    rows = table.orderBy(*order, *table.columns).limit(count).collect()
    return TopRows(rows, len(rows) if len(rows) < count else table.count())


def in_millis(table: DataFrame) -> DataFrame:
    """Add `start_ms`, because Python would convert a timestamp to this machine's time zone."""
    return table.withColumn("start_ms", F.unix_millis("start"))


def identifier(value: object) -> object:
    """An id as text, so that its digits are not grouped as those of a number."""
    return str(value) if isinstance(value, int) else value


def utc(milliseconds: int) -> datetime:
    """The time `milliseconds` after 1970, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def moment(milliseconds: int | None) -> datetime | None:
    """The same for a time that may be unknown."""
    return None if milliseconds is None else utc(milliseconds)
