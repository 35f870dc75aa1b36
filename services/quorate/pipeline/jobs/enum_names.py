"""Kafka's names for enum values in records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Mapping


def named(number: Column, names: Mapping[int, str]) -> Column:
    """The name of a number; an unknown number is written as `UNKNOWN(n)`."""
    result = F.when(
        number.isNotNull(), F.concat(F.lit("UNKNOWN("), number.cast("string"), F.lit(")"))
    )
    for value, name in names.items():
        result = F.when(number == value, name).otherwise(result)
    return result
