"""Rows of a frame as plain values that compare: times in milliseconds, arrays as tuples."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    """All rows, in an order that follows from what is in them."""
    times = {
        field.name: F.unix_millis(field.name)
        for field in frame.schema.fields
        if isinstance(field.dataType, T.TimestampType)
    }
    plain = frame.withColumns(times) if times else frame
    return sorted((tuple(map(_plain, row)) for row in plain.collect()), key=repr)


def _plain(value: object) -> object:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def moment(timestamp_ms: int) -> datetime:
    """Milliseconds since 1970 as what Spark takes for a timestamp."""
    return datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC)
