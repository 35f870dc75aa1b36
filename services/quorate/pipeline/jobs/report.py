"""The job `report`: one HTML page about a log, verdicts first."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.jobs import elections, health, partitions
from quorate.pipeline.jobs.progress import progress
from quorate.pipeline.jobs.record_types import record_types
from quorate.pipeline.jobs.registry import JOBS, PipelineError
from quorate.pipeline.jobs.running import furthest_log, read_log, source_options
from quorate.pipeline.report import contents
from quorate.pipeline.report.page import page
from quorate.pipeline.report.text import grouped
from quorate.pipeline.session import session

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame


def run(arguments: argparse.Namespace) -> int:
    """Write the page, and print where it is. Raises PipelineError for what the user can mend."""
    place: str = arguments.html
    if os.path.isdir(place):
        raise PipelineError(f"--html: {place} is a directory; name a file")
    if not os.path.isdir(os.path.dirname(os.path.abspath(place))):
        raise PipelineError(
            f"--html: the directory of {place} does not exist; make it, or name another"
        )
    options = source_options(JOBS["report"], arguments)
    with session(arguments.master) as spark, progress(spark):
        every = read_log(spark, options)
        log = furthest_log(every) if len(arguments.path or ()) > 1 else every
        text = report(log, ", ".join(arguments.path or [arguments.bootstrap_controller]), every)
    # A reader never sees half a page, and a page of before stays where this one fails.
    unfinished = f"{place}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(unfinished, place)
    sys.stdout.write(f"{place}\n")
    return 0


def report(log: DataFrame, name: str, every: DataFrame | None = None) -> str:
    """The page of one log as the source gives it; `every` has the rows of all that are judged."""
    span = contents.span_of(log.where("crc_valid"))
    if span is None:
        raise PipelineError(f"--path: {name}: there is no record in it")
    ends = log.where("crc_valid").agg(
        F.max("offset").alias("last"), F.count(F.lit(1)).alias("rows")
    )
    found = ends.first()
    assert found is not None
    epochs = elections.tables(log, {})["elections"].persist()
    of_partitions = {
        name: table if name == "history" else table.persist()
        for name, table in partitions.tables(log, {}).items()
    }
    facts = (
        ("log", name),
        ("records", f"{grouped(found['rows'])}, the last at offset {grouped(found['last'])}"),
        ("from", f"{span.start:%Y-%m-%d %H:%M:%S} UTC"),
        ("to", f"{span.end:%Y-%m-%d %H:%M:%S} UTC"),
    )
    return page(
        "What the metadata log tells",
        facts,
        contents.worst_first(
            [
                *contents.health_verdicts(health.health(log if every is None else every)),
                *contents.partition_verdicts(of_partitions),
            ]
        ),
        (
            contents.elections_section(epochs, span),
            contents.partitions_section(of_partitions, span),
            contents.records_section(record_types(log)),
        ),
    )
