"""Spark's and Arrow's words for the frame's schema agree, and Spark's do without Arrow."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from quorate.pipeline.source.arrow_schema import arrow_schema
from quorate.pipeline.source.frame_schema import COLUMNS, TYPED, spark_schema

ASKED_FOR_COLUMNS = """
import sys
from pyspark_quorate import DefaultSource
print(DefaultSource({"path": "x", "recordTypes": "TopicRecord"}).schema() != "")
print({"pyarrow", "numpy", "pandas"} & set(sys.modules))
"""


@pytest.mark.usefixtures("spark")
def test_spark_and_arrow_have_the_same_columns() -> None:
    arrow = from_arrow_schema(arrow_schema(COLUMNS, TYPED))
    assert StructType.fromDDL(spark_schema(COLUMNS, TYPED)) == arrow
    assert len(arrow) == len(COLUMNS) + len(TYPED)


def test_to_be_asked_for_its_columns_the_source_imports_no_arrow() -> None:
    command = [sys.executable, "-c", ASKED_FOR_COLUMNS]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "True\nset()\n"
