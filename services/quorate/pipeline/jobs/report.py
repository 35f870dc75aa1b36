"""The job `report`: one HTML page about a log, verdicts first."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quorate.pipeline.jobs import brokers, compare, elections, health, partitions, sizes
from quorate.pipeline.jobs.damage import DamageSeen
from quorate.pipeline.jobs.keeping import at_hand, kept_rows
from quorate.pipeline.jobs.log_rows import in_log_time, valid
from quorate.pipeline.jobs.log_size import is_small_log
from quorate.pipeline.jobs.progress import progress
from quorate.pipeline.jobs.registry import JOBS, PipelineError
from quorate.pipeline.jobs.running import (
    UNCOMMITTED,
    damage_options,
    furthest_log,
    opened,
    read_log,
    source_options,
)
from quorate.pipeline.report import contents
from quorate.pipeline.report.brokers import broker_totals, broker_verdicts, brokers_section
from quorate.pipeline.report.page import page
from quorate.pipeline.report.plots import Span
from quorate.pipeline.report.shown import utc
from quorate.pipeline.report.text import grouped
from quorate.pipeline.report.voters import voter_verdict, voters_section

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame


def run(arguments: argparse.Namespace) -> int:
    """Write the page, and print where it is. Raises PipelineError for what the user can mend."""
    place: str = arguments.html
    if os.path.isdir(place):
        raise PipelineError(f"--html: {place} is a directory; name a file")
    folder = os.path.dirname(os.path.abspath(place))
    if not os.path.isdir(folder):
        raise PipelineError(
            f"--html: the directory of {place} does not exist; make it, or name another"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PipelineError(
            f"--html: {folder} cannot be written; let this user write there, or name another"
        )
    options = source_options(JOBS["report"], arguments)
    paths: list[str] = arguments.path or []
    small = is_small_log(options)
    with opened(arguments.master, is_small=small) as spark, progress(spark):
        seen = DamageSeen(lambda: read_log(spark, damage_options(options)))
        log = seen.watched(read_log(spark, options))
        if small:
            log = at_hand(log)
        every = None
        if len(paths) > 1:
            log = furthest_log(log)
            every = read_log(spark, options | UNCOMMITTED)
            if small:
                every = at_hand(every)
        text = report(log, ", ".join(paths or [arguments.bootstrap_controller]), every)
        seen.warn("report")
    # A reader never sees half a page, and a page of before stays where this one fails.
    unfinished = f"{place}.unfinished"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, place)
    except OSError as error:
        raise PipelineError(
            f"--html: {unfinished} cannot be written: {error.strerror}; mend that, or name another"
        ) from error
    sys.stdout.write(f"{place}\n")
    return 0


def report(log: DataFrame, name: str, every: DataFrame | None = None) -> str:
    """The page of one log as the source gives it; `every` has all rows of several directories."""
    facts, span = _facts(log, name)
    epochs = elections.tables(log, {})["elections"].persist()
    of_partitions = {
        name: table if name == "history" else table.persist()
        for name, table in partitions.tables(log, {}).items()
    }
    flapping = {option.name: option.default for option in JOBS["brokers"].options}
    rows_of_brokers = kept_rows(log, brokers.RECORD_TYPES)
    of_brokers = {
        name: table.persist() for name, table in brokers.tables(rows_of_brokers, flapping).items()
    }
    totals = broker_totals(of_brokers).persist()
    verdicts = [
        *contents.health_verdicts(health.health(log if every is None else every)),
        *broker_verdicts(totals),
        *contents.partition_verdicts(of_partitions),
    ]
    sections = [
        contents.elections_section(epochs, span),
        brokers_section(of_brokers, totals, span, flapping),
        contents.partitions_section(of_partitions, span),
        contents.records_section(sizes.sizes_by_type(log).persist()),
    ]
    if every is not None:
        compared = {name: table.persist() for name, table in compare.tables(every, {}).items()}
        verdicts.append(voter_verdict(compared["divergence"]))
        sections.insert(1, voters_section(compared))
    return page("What the metadata log tells", facts, contents.worst_first(verdicts), sections)


def _facts(log: DataFrame, name: str) -> tuple[tuple[tuple[str, str], ...], Span]:
    """What stands above the page, and the time that it is about."""
    found = (
        in_log_time(valid(log), log)
        .agg(
            F.min(F.unix_millis("timestamp")).alias("first_ms"),
            F.max(F.unix_millis("timestamp")).alias("last_ms"),
            F.max("offset").alias("last"),
            F.count("*").alias("rows"),
        )
        .first()
    )
    assert found is not None
    if not found.rows:
        raise PipelineError(f"--path: {name}: there is no record in it")
    span = Span(utc(found.first_ms), utc(found.last_ms))
    facts = (
        ("log", name),
        ("records", f"{grouped(found.rows)}, the last at offset {grouped(found.last)}"),
        ("from", f"{span.start:%Y-%m-%d %H:%M:%S} UTC"),
        ("to", f"{span.end:%Y-%m-%d %H:%M:%S} UTC"),
    )
    return facts, span
