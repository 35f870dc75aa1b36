"""Runs one job: session, input log, tables, output.

From several directories a job reads one log: each record from a directory that has it. Jobs that
compare logs read all of them.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from quorate.pipeline.jobs.damage_report import DamageObservation
from quorate.pipeline.jobs.option_flags import in_flags
from quorate.pipeline.jobs.output import check_output, write_tables
from quorate.pipeline.jobs.progress import progress
from quorate.pipeline.jobs.registry import PipelineError
from quorate.pipeline.jobs.spark_errors import spark_error_message
from quorate.pipeline.jobs.table_filters import (
    apply_filter,
    check_condition,
    condition_told,
    parse_filter,
)
from quorate.pipeline.session import java_fault, session
from quorate.pipeline.source.batch_plan import time_warnings
from quorate.pipeline.source.committed_end import shared_log
from quorate.pipeline.source.directories import find_directories
from quorate.pipeline.source.live_log import QuorumError
from quorate.pipeline.source.live_plan import live_time_warnings
from quorate.pipeline.source.log_seek import EndSeeker
from quorate.pipeline.source.merged_log import choice_words
from quorate.pipeline.source.options import OptionError, parse_options
from quorate.pipeline.source.stream_reader import check_stream

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from quorate.pipeline.jobs.registry import Job
    from quorate.pipeline.source.directories import Directory

FORMAT: Final = "kraft"
# Unused columns are neither decoded nor copied: JSON and values take longer than everything else.
_TYPED_OPTIONS: Final = {
    "payload": "control",
    "columns": "offset,leader_epoch,timestamp,is_control,record_type,payload,segment,crc_valid,"
    "source_node",
}
# A comparison of directories needs uncommitted records; a live quorum serves committed ones only.
UNCOMMITTED: Final = {"isolation": "read_uncommitted", "mergeDirectories": "false"}
# The options that report damage: such rows are read with all their columns.
_DAMAGE_ONLY: Final = {
    "payload": "control",
    "columns": "offset,record_type,payload,crc_valid",
    "includeControlRecords": "false",
}


def run_job(job: Job, arguments: argparse.Namespace) -> int:
    """Run a job and return the exit status; an error that a user can fix is one line on stderr."""
    try:
        module = import_module(job.module)
        if not job.tables:
            status: int = module.run(arguments)
            return status
        # Report an invalid flag or path before Spark starts.
        options = source_options(job, arguments)
        names = chosen_tables(job, arguments)
        check_output(names, arguments.format, arguments.output)
        schemas = {name: module.SCHEMAS[name] for name in names}
        narrowing = parse_filter(arguments, schemas)
        check_log(job, options)
        with job_session(arguments.master, arguments.output) as spark, progress(spark) as shown:
            check_condition(spark, narrowing, schemas[names[0]])
            seen = DamageObservation(lambda: read_log(spark, damage_options(options)))
            log = seen.watched(read_log(spark, options))
            values = {option.name: getattr(arguments, option.name) for option in job.options}
            tables = module.tables(log, values)
            chosen = {name: apply_filter(tables[name], narrowing) for name in names}
            with condition_told(narrowing):
                write_tables(chosen, arguments.format, arguments.output, arguments.rows, shown)
            # Jobs about the logs themselves have damage in their first table.
            is_told = job.reads_all_logs and job.tables[0] in names and narrowing.where is None
            if not is_told:
                seen.warn(job.name)
    except PipelineError as error:
        return _fail(job, str(error))
    return 0


@contextmanager
def job_session(
    master: str | None, output: str | None = None, *, is_small: bool = False
) -> Iterator[SparkSession]:
    """Open a session and turn Spark's errors into PipelineError.

    `is_small` configures the session for a small log. `output` is the job's output, for the message
    about a full disk.
    """
    begun = session(master, is_small=True) if is_small else session(master)
    with begun as spark:
        try:
            yield spark
        except (PySparkException, Py4JError, ConnectionError) as error:
            # Java must still run here, because it has the error text. A failure below a join is an
            # error of Java's own that contains the same text.
            fault = java_fault(spark, error)
            if fault is None:
                fault = spark_error_message(error, spark.sparkContext.pythonExec, output)
            raise PipelineError(in_flags(fault)) from error


def check_log(job: Job, options: Mapping[str, str], *, is_stream: bool = False) -> list[Directory]:
    """Check the log and report which of several is read; returns its directories, none if live.

    Raises PipelineError for anything that the source would reject, with its message.
    """
    try:
        asked = parse_options(options)
        if is_stream:
            check_stream(asked)
        directories = find_directories(asked.paths)
        if asked.merges_directories:
            is_committed_only = asked.is_committed_only
            log = shared_log(directories, EndSeeker(), is_committed_only=is_committed_only)
            sys.stderr.write(f"quorate pipeline {job.name}: {choice_words(log)}\n")
        for warning in time_warnings(asked) if asked.paths else live_time_warnings(asked):
            sys.stderr.write(f"quorate pipeline {job.name}: {in_flags(warning)}\n")
    except (OptionError, QuorumError) as error:
        raise PipelineError(in_flags(str(error))) from error
    return directories


def chosen_tables(job: Job, arguments: argparse.Namespace) -> tuple[str, ...]:
    """The names of the tables that the flags select, in the job's order."""
    asked = arguments.table or job.tables
    return tuple(name for name in job.tables if name in asked)


def read_log(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The source's frame for these options."""
    reader = spark.read.format(FORMAT)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def source_options(job: Job, arguments: argparse.Namespace) -> dict[str, str]:
    """The source's options for a job's flags. Raises PipelineError if they name no log."""
    paths: list[str] = arguments.path or []
    servers: str | None = arguments.bootstrap_controller
    if bool(paths) == bool(servers):
        raise PipelineError(
            "--path: name the directory of a log, once for each voter's,"
            " or --bootstrap-controller HOST:PORT of a running quorum, not both"
        )
    config: str | None = arguments.command_config
    if config and paths:
        raise PipelineError(
            "--command-config: it is for a connection, and --path makes none: leave it out"
        )
    for path in paths:
        if "," in path:
            raise PipelineError(f"--path: {path!r}: a comma cannot stand in it; link to it")
    options = {
        "includeControlRecords": "true",
        "isolation": arguments.isolation,
        "startingOffsets": arguments.starting_offsets,
        "endingOffsets": arguments.ending_offsets,
        "onDamage": arguments.on_damage,
    }
    options |= {"path": ",".join(paths)} if paths else {"bootstrap.servers": str(servers)}
    if len(paths) > 1:
        options["mergeDirectories"] = "true"
    if job.reads_all_logs and paths:
        options |= UNCOMMITTED
    if config:
        options["commandConfig"] = config
    if job.record_types:
        options["recordTypes"] = ",".join(job.record_types)
        options |= _TYPED_OPTIONS
    return options


def damage_options(options: Mapping[str, str]) -> dict[str, str]:
    """The source's options to read only the damage in the same range."""
    return {name: said for name, said in options.items() if name != "recordTypes"} | _DAMAGE_ONLY


def _fail(job: Job, message: str) -> int:
    sys.stderr.write(f"quorate pipeline {job.name}: {message}\n")
    return 1
