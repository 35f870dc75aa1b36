from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from quorate.pipeline.jobs.progress import progress, stage_line

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_nothing_is_said_where_nobody_looks(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress(spark):
        spark.range(10).count()
    assert capsys.readouterr().err == ""


def test_a_terminal_is_left_clean(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress(spark):
        spark.range(10).count()
    assert capsys.readouterr().err.endswith("\r\x1b[K")
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]


def test_there_is_no_line_between_stages(spark: SparkSession) -> None:
    assert stage_line(spark) == ""
