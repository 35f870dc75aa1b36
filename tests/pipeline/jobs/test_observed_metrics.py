"""Figures of a log that was read, and of one in which there was nothing to read."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from quorate.pipeline.command import main
from quorate.pipeline.jobs import job_runner
from quorate.pipeline.jobs.observed_metrics import observed_values
from quorate.pipeline.jobs.registry import JOBS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_what_was_on_the_way_is_counted(spark: SparkSession) -> None:
    seen = Observation()
    spark.range(7).observe(seen, F.count_if(F.col("id") > 3).alias("high")).count()
    assert observed_values(seen) == {"high": 3}


def test_without_anything_on_the_way_there_are_no_figures(spark: SparkSession) -> None:
    seen = Observation()
    nothing = spark.range(7).where("id > 7").observe(seen, F.count("*").alias("rows"))
    nothing.groupBy("id").count().persist().count()
    assert observed_values(seen).get("rows", 0) == 0


@pytest.mark.parametrize("words", [["image"], ["diff", "--from", "0"], ["elections"]])
def test_a_log_without_a_record_has_tables_without_rows(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    """As that of a controller that has been formatted, and has had no contact with others yet."""
    (tmp_path / f"{0:020}.log").touch()
    monkeypatch.setattr(job_runner, "session", lambda _: nullcontext(spark))
    shown = JOBS[words[0]].tables[0]
    flags = ["--path", str(tmp_path), "--table", shown, "--format", "csv"]
    assert main([*words, *flags]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert len(said.out.splitlines()) == 1, "the names of the columns"
