"""Jobs over one log, in one session: a program for spark-submit, and what a test does itself.

    every_job.py OUTPUT PATH JOB [JOB...]

OUTPUT gets a directory for each job: its tables as JSON lines, or its page, or its Parquet.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

from quorate.pipeline.command import main
from quorate.pipeline.jobs import job_runner
from quorate.pipeline.jobs.registry import JOBS
from quorate.pipeline.session import session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

# Any job that declares a required option gets it.
REQUIRED: Final = {"--from": "100"}


def run_jobs(spark: SparkSession, output: Path, path: Path, names: Sequence[str]) -> None:
    """Run them in a session that is there: each by its words, as from a command line."""
    with mock.patch.object(job_runner, "session", return_value=nullcontext(spark)):
        for name in names:
            words = [name, *words_of(name, output / name), "--path", str(path)]
            status = main(words)
            assert status == 0, f"{words}: {status}"


def words_of(name: str, place: Path) -> list[str]:
    """The arguments of a job except the log, so that its result lies below `place`."""
    job = JOBS[name]
    required = [
        word
        for option in job.options
        if option.flag in REQUIRED
        for word in (option.flag, REQUIRED[option.flag])
    ]
    if job.tables:
        return ["--format", "json", "--output", str(place), *required]
    if job is JOBS["report"]:
        place.mkdir()
        return ["--html", str(place / "report.html")]
    return ["--output", str(place), *required]


def results(spark: SparkSession, output: Path) -> dict[str, list[str]]:
    """Everything that jobs wrote, in an order that does not depend on who wrote it."""
    found = {
        str(table.relative_to(output)): sorted(
            line for part in table.glob("part-*.json") for line in part.read_text().splitlines()
        )
        for name, job in JOBS.items()
        for table in ((output / name / table) for table in job.tables)
        if table.exists()
    }
    if (output / "report").exists():
        page = (output / "report/report.html").read_text().splitlines()
        # Two pages of one log are made at two times.
        found["report"] = [line for line in page if not line.startswith("<dt>made</dt>")]
    stored = spark.read.parquet(str(output / "ingest"))
    found["ingest"] = sorted(map(repr, stored.collect()))
    return found


if __name__ == "__main__":
    where, log, *jobs = sys.argv[1:]
    with session() as opened:
        run_jobs(opened, Path(where), Path(log), jobs)
