"""Job `report`: one HTML page about a log, verdicts first."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import quorate
from quorate.pipeline.jobs import (
    brokers,
    compare,
    configs,
    elections,
    features,
    health,
    membership,
    partitions,
    sizes,
)
from quorate.pipeline.jobs.cached_rows import at_hand, cache_rows
from quorate.pipeline.jobs.damage_report import DamageObservation
from quorate.pipeline.jobs.job_runner import (
    UNCOMMITTED,
    check_log,
    damage_options,
    job_session,
    read_log,
    source_options,
)
from quorate.pipeline.jobs.log_size import is_small_log
from quorate.pipeline.jobs.option_flags import in_flags
from quorate.pipeline.jobs.progress import progress
from quorate.pipeline.jobs.registry import JOBS, PipelineError
from quorate.pipeline.report import change_section
from quorate.pipeline.report import sections as contents
from quorate.pipeline.report.activity_section import activity_section, extent_of, minutes_of
from quorate.pipeline.report.broker_section import broker_ids, broker_verdicts, brokers_section
from quorate.pipeline.report.commands import LogCommands, commands_of
from quorate.pipeline.report.formatting import duration, format_int
from quorate.pipeline.report.page import page
from quorate.pipeline.report.partition_section import (
    lacking_replicas,
    partition_verdicts,
    partitions_section,
)
from quorate.pipeline.report.voter_section import voter_verdict, voters_section
from quorate.pipeline.source.options import OptionError, parse_options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from quorate.pipeline.report.activity_section import Extent
    from quorate.pipeline.report.broker_section import BrokerIds
    from quorate.pipeline.source.directories import Directory

    Fact = tuple[str, str]


def run(arguments: argparse.Namespace) -> int:
    """Write the page and print its path. Raises PipelineError for what the user can fix."""
    if os.path.exists(arguments.html) and not os.path.isfile(arguments.html):
        raise PipelineError(f"--html: {arguments.html} is not a file; name one")
    # A symbolic link stays, and its target is replaced.
    place = os.path.realpath(arguments.html)
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise PipelineError(
            f"--html: the directory of {arguments.html} does not exist; make it, or name another"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PipelineError(
            f"--html: {folder} cannot be written; let this user write there, or name another"
        )
    options = source_options(JOBS["report"], arguments)
    paths: list[str] = arguments.path or []
    directories = check_log(JOBS["report"], options)
    cluster_id = _cluster_id(options, directories)
    small = is_small_log(directories)
    with job_session(arguments.master, is_small=small) as spark, progress(spark):
        made = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, by Quorate {quorate.__version__}"
        origin = (("made", made), ("cluster", cluster_id))
        seen = DamageObservation(lambda: read_log(spark, damage_options(options)))
        log = seen.watched(read_log(spark, options))
        if small:
            log = at_hand(log)
        every = None
        if len(paths) > 1:
            every = read_log(spark, options | UNCOMMITTED)
            if small:
                every = at_hand(every)
        name = ", ".join(paths or [arguments.bootstrap_controller])
        text = report(log, name, every, commands=commands_of(arguments), origin=origin)
        seen.warn("report")
    # Readers never see an incomplete page, and the previous page stays if this one fails.
    unfinished = f"{place}.unfinished"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, place)
    except (OSError, KeyboardInterrupt) as error:
        with suppress(OSError):
            os.unlink(unfinished)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PipelineError(
            f"--html: {unfinished} cannot be written: {error.strerror}; mend that, or name another"
        ) from error
    sys.stdout.write(f"{arguments.html}\n")
    return 0


def _cluster_id(options: Mapping[str, str], directories: Sequence[Directory]) -> str:
    """The cluster whose log it is. Raises PipelineError if a running quorum cannot be reached."""
    from quorate.pipeline.source.live_log import QuorumError, live_log

    if directories:
        found = (directory.cluster_id for directory in directories)
        return next((cluster_id for cluster_id in found if cluster_id), "no meta.properties tells")
    try:
        with live_log(parse_options(options)) as log:
            return log.cluster_id()
    except (OptionError, QuorumError) as error:
        raise PipelineError(in_flags(str(error))) from error


def report(
    log: DataFrame,
    name: str,
    every: DataFrame | None = None,
    *,
    commands: LogCommands | None = None,
    origin: Sequence[Fact] = (),
) -> str:
    """The page for one log as the source reads it; `every` has all rows of several directories.

    `commands` are the commands that print its tables, `origin` has facts that its rows lack.
    """
    commands = commands or LogCommands()
    minutes = minutes_of(log)
    extent = extent_of(minutes)
    if extent is None:
        raise PipelineError(f"--path: {name}: it holds no record; name a log that has some")
    span = extent.span
    epochs = elections.tables(log, {})["elections"].persist()
    of_partitions = {
        name: table if name == "history" else table.persist()
        for name, table in partitions.tables(log, {}).items()
    }
    by_type = sizes.sizes_by_type(log).persist()
    rows = cache_rows(log, (*brokers.RECORD_TYPES, *change_section.RECORD_TYPES))
    flapping = {option.name: option.default for option in JOBS["brokers"].options}
    of_brokers = {name: table.persist() for name, table in brokers.tables(rows, flapping).items()}
    ids = broker_ids(of_brokers["totals"], is_whole=extent.is_whole)
    lacking = lacking_replicas(of_partitions["history"], ids).persist()
    levels = features.tables(rows, {})["features"].persist()
    members = membership.tables(rows, {})
    verdicts = [
        *contents.health_verdicts(health.health(log if every is None else every, with_pairs=False)),
        *broker_verdicts(ids, of_brokers["flapping"], span),
        *partition_verdicts(of_partitions, lacking, span),
    ]
    has_noops = not by_type.where("record_type = 'NoOpRecord'").isEmpty()
    sections = [
        contents.elections_section(epochs, span, commands, has_noops=has_noops),
        change_section.members_section(members, span, commands),
        brokers_section(of_brokers, span, flapping, commands),
        partitions_section(of_partitions, lacking, ids, span, commands),
        change_section.settings_section(levels, configs.config_history(rows), commands),
        activity_section(minutes, span, commands),
        contents.records_section(by_type, commands),
    ]
    if every is not None:
        compared = {name: table.persist() for name, table in compare.tables(every, {}).items()}
        verdicts.append(voter_verdict(compared["divergence"]))
        sections.insert(1, voters_section(compared, commands))
    facts = (
        *origin,
        *_facts(name, extent),
        *change_section.levels_now(levels),
        *(_sizes(of_partitions["churn"], ids) if extent.is_whole else ()),
    )
    return page("What the metadata log tells", facts, contents.worst_first(verdicts), sections)


def _facts(name: str, extent: Extent) -> list[Fact]:
    """Facts about the log and its time span."""
    nodes = ", ".join(map(str, extent.node_ids))
    span = extent.span
    last = format_int(extent.last_offset)
    lasted = duration((span.end - span.start) // timedelta(milliseconds=1))
    return [
        ("log", f"{name}, of node {nodes}" if nodes else name),
        ("records", f"{format_int(extent.row_count)}, the last at offset {last}"),
        ("from", f"{span.start:%Y-%m-%d %H:%M:%S} UTC"),
        ("to", f"{span.end:%Y-%m-%d %H:%M:%S} UTC, {lasted} later"),
    ]


def _sizes(churn: DataFrame, ids: BrokerIds) -> list[Fact]:
    """The numbers of brokers, topics and partitions at the end of the log."""
    found = (
        churn.where("not removed")
        .agg(
            F.count("*").alias("topics"),
            F.coalesce(F.sum("partitions"), F.lit(0)).alias("partitions"),
        )
        .first()
    )
    assert found is not None
    return [
        (
            "brokers",
            f"{format_int(len(ids.registered))}, of which {format_int(len(ids.fenced))} fenced",
        ),
        ("topics", f"{format_int(found.topics)} with {format_int(found.partitions)} partitions"),
    ]
