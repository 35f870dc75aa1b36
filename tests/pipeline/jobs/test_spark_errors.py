"""An error of Spark ends as one sentence: what is at fault, and what to do about it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from quorate.pipeline.jobs.spark_errors import spark_error_message

if TYPE_CHECKING:
    from pathlib import Path

CALLING = "An error occurred while calling o61.load."
NO_SOURCE = (
    f"{CALLING}\n: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to"
    " find the data source: kraft. SQLSTATE: 42K02\n\tat org.apache.spark.sql.errors.Q(Q.scala:770)"
)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "[PYTHON_DATA_SOURCE_ERROR] Failed when Python data source instance creation: Traceback"
            '\n  File "worker.py", line 1, in f\n'
            "quorate.pipeline.source.options.OptionError: path: x cannot be listed\n",
            "path: x cannot be listed",
        ),
        (
            f"{CALLING}\n: org.apache.spark.SparkException: Job aborted: Lost task 0.0 in stage"
            " 14.0: java.lang.OutOfMemoryError: Java heap space\n\tat org.apache.spark.util.X",
            "Spark's Java process ran out of memory (Java heap space): give it more, by"
            " spark-submit --driver-memory, or read less, as with --starting-offsets snapshot",
        ),
        (
            f"{CALLING}\n: org.apache.spark.SparkException: Job aborted: Python worker exited"
            " unexpectedly (crashed)\n\tat org.apache.spark.X\nCaused by: java.io.EOFException\n",
            "a Python process of Spark was killed or crashed, most likely for lack of memory: give"
            " it more, or read less, as with --starting-offsets snapshot",
        ),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception:"
            " [CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. SQLSTATE: 40000",
            "another process writes to /the/lake or its checkpoint: wait for its end, or name"
            " another place",
        ),
        ("one thing\nand more", "one thing"),
    ],
)
def test_the_sentence_is_found_in_a_traceback(said: str, sentence: str) -> None:
    assert spark_error_message(ValueError(said), sys.executable, "/the/lake") == sentence


@pytest.mark.parametrize(
    "said",
    [
        "java.io.IOException: mkdir of file:/a/b/_spark_metadata failed",
        "org.apache.spark.SparkException: Lost task: java.io.IOException: Mkdirs failed to create"
        " file:/a/b/_spark_metadata (exists=false, cwd=file:/c)",
    ],
)
def test_a_place_that_cannot_be_written_is_named_with_the_remedy(said: str) -> None:
    told = spark_error_message(
        ValueError(f"{CALLING}\n: {said}\n\tat org.apache.hadoop.X"), "python"
    )
    assert told.startswith("/a/b/_spark_metadata cannot be made: let the user that runs Spark")


def test_a_python_that_spark_cannot_start_is_named_with_the_remedy(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\n")
    told = spark_error_message(ValueError(NO_SOURCE), str(python))
    assert f" in the Python that it starts, {python}: " in told
    assert "Permission denied" in told
    assert "PYSPARK_PYTHON" in told


def test_a_python_without_the_package_says_so(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    told = spark_error_message(ValueError(NO_SOURCE), str(python))
    assert f"{python}: ModuleNotFoundError: No module named 'pyspark_quorate'; let" in told


def test_a_python_that_has_the_package_is_not_blamed_for_lacking_it() -> None:
    told = spark_error_message(ValueError(NO_SOURCE), sys.executable)
    assert f"{sys.executable}: it has the package here, but not for Spark; " in told


FULL = (
    "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted\n"
    "Caused by: java.io.IOException: No space left on device\n\tat java.base/x"
)


@pytest.mark.parametrize(
    ("full", "named"),
    [("lake", "lake"), ("tmp", "tmp"), ("", "lake or {place}/tmp")],
)
def test_a_full_disk_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, named: str
) -> None:
    def usage(place: str) -> SimpleNamespace:
        return SimpleNamespace(free=0 if full and place.endswith(full) else 1 << 40)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    told = spark_error_message(ValueError(FULL), "python", str(tmp_path / "lake"))
    where = f"{tmp_path}/{named.format(place=tmp_path)}"
    assert told.startswith(f"no space is left on the disk of {where}: free some, ")
    assert "TMPDIR" in told


def test_a_full_disk_that_a_task_met_is_told_from_the_stack_of_java(tmp_path: Path) -> None:
    error = ValueError("[STREAM_FAILED] Query [id = 1] terminated: Job aborted. SQLSTATE: XXKST")
    error._stackTrace = FULL  # type: ignore[attr-defined]
    told = spark_error_message(error, "python", str(tmp_path))
    assert told.startswith("no space is left on the disk of ")


def test_a_job_that_writes_nothing_has_filled_its_scratch(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp_path))
        told = spark_error_message(ValueError(FULL), "python")
    assert told.startswith(f"no space is left on the disk of {tmp_path}: ")
