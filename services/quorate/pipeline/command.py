"""Command-line flags of `quorate pipeline` and of the same jobs under spark-submit.

Spark is imported only when a job runs or shows its help; without Spark the help lacks the columns.
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from quorate.pipeline.jobs.registry import JOBS, number
from quorate.process.output_encoding import escape_unencodable
from quorate.process.stop_signals import StopSignal, raised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quorate.pipeline.jobs.registry import Job

FORMATS: Final = ("table", "json", "csv", "parquet")
_LIBRARIES: Final = ("pyspark", "pyarrow", "pandas", "py4j")
INSTALL: Final = "python -m pip install 'quorate[pipeline]'"
ROWS_DEFAULT: Final = 200


class JobParser(argparse.ArgumentParser):
    """Ends with status 1 on bad input, as the other commands do."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {message}\nsee `{self.prog} --help`\n")


class JobHelp(argparse.Action):
    """Shows the help of a job with the columns of its tables, for which it imports Spark."""

    const: Job

    def __init__(self, **words: Any) -> None:  # noqa: ANN401 - as argparse has them
        super().__init__(**words, nargs=0)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        with suppress(ModuleNotFoundError):
            schemas = import_module(self.const.module).SCHEMAS if self.const.tables else {}
            for table, schema in schemas.items():
                parser.add_argument_group(f"columns of {table}", ", ".join(schema.names))
        parser.print_help()
        parser.exit()


def overview() -> str:
    """The jobs, one per line."""
    width = max(map(len, JOBS)) + 2
    lines = [f"  {job.name:<{width}}{job.summary}" for job in JOBS.values()]
    return "\n".join(["jobs:", *lines, "", "`quorate pipeline JOB --help` shows what each takes."])


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add each job as an action of `parser`, whose epilog lists them."""
    actions = parser.add_subparsers(
        metavar="JOB", dest="job", required=True, prog="quorate pipeline", help="one of the below"
    )
    for job in JOBS.values():
        action = actions.add_parser(
            job.name,
            description=f"{job.summary[0].upper()}{job.summary[1:]}. {job.description}".strip(),
            add_help=False,
        )
        action.add_argument(
            "-h",
            "--help",
            action=JobHelp,
            const=job,
            default=argparse.SUPPRESS,
            help="show this help and exit",
        )
        _add_place(action, has_end=bool(job.tables))
        if job.tables:
            _add_output(action, job)
        _add_own(action, job)
        action.set_defaults(run=partial(_run, job))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job from its arguments, under spark-submit or without; returns the exit status."""
    parser = JobParser(
        prog="quorate pipeline",
        description="Questions about the past of a quorum, answered from its log by Spark.",
        epilog=overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="quorate pipeline JOB ...",
    )
    add_jobs(parser)
    if arguments is None:
        escape_unencodable()
    parsed = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    run: Callable[[argparse.Namespace], int] = parsed.run
    return run(parsed)


def _add_place(action: argparse.ArgumentParser, *, has_end: bool) -> None:
    add = action.add_argument
    add(
        "--path",
        action="append",
        metavar="DIR",
        help="a log directory, or one that holds __cluster_metadata-0; again for each voter's",
    )
    add(
        "--bootstrap-controller",
        metavar="HOST:PORT[,HOST:PORT]",
        help="read from a running quorum instead",
    )
    add(
        "--command-config",
        metavar="FILE",
        help="properties for the connection to it, such as certificates; on every worker",
    )
    add(
        "--starting-offsets",
        default="earliest",
        metavar="PLACE",
        help="earliest, latest, snapshot (the newest), snapshot@PLACE (the newest up to there),"
        " an offset or a time (earliest)",
    )
    add(
        "--ending-offsets",
        default="latest",
        metavar="PLACE",
        # A stream rejects it with a message of its own.
        help="latest, an offset or a time (latest)" if has_end else argparse.SUPPRESS,
    )
    add(
        "--isolation",
        choices=("committed", "read_uncommitted"),
        default="committed",
        help="whether records count that no majority is known to hold (committed)",
    )
    add(
        "--on-damage",
        choices=("row", "fail"),
        default="row",
        help="go on behind bytes that do not check, or end with an error (row)",
    )
    add(
        "--master",
        metavar="URL",
        help="the Spark master (local[*]; under spark-submit what that says)",
    )


def _add_output(action: argparse.ArgumentParser, job: Job) -> None:
    add = action.add_argument
    add("--format", choices=FORMATS, default="table", help="how the tables are shown (table)")
    add("--output", metavar="DIR", help="write the tables below this directory")
    add(
        "--rows",
        type=number(1, 1_000_000),
        default=ROWS_DEFAULT,
        metavar="N",
        help=f"show at most so many rows of a table as text ({ROWS_DEFAULT})",
    )
    add(
        "--table",
        action="append",
        choices=job.tables,
        help="only this table; again for more",
    )
    add("--columns", metavar="NAME,...", help="of one table only these columns")
    add("--where", metavar="SQL", help="of one table only these rows: \"topic = 'orders'\"")
    add("--order-by", metavar="NAME [desc],...", help="sort the one table by these columns")


def _add_own(action: argparse.ArgumentParser, job: Job) -> None:
    for option in job.options:
        action.add_argument(
            option.flag,
            type=option.parse,
            default=option.default,
            required=option.is_required,
            metavar=option.metavar,
            help=option.help,
        )


def _run(job: Job, arguments: argparse.Namespace) -> int:
    try:
        with raised():
            return _run_job(job, arguments)
    except KeyboardInterrupt as error:
        ended = error if isinstance(error, StopSignal) else StopSignal(signal.SIGINT)
        _say(job, f"{ended} ended it before it was done; run it again")
        return ended.status


def _run_job(job: Job, arguments: argparse.Namespace) -> int:
    try:
        from quorate.pipeline.jobs.job_runner import run_job
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _LIBRARIES:
            raise
        if library == "py4j":
            # It is a dependency of Spark, and few users know its name.
            library = "pyspark"
        _say(job, f"{library} is missing: install it with {INSTALL}")
        return 1
    return run_job(job, arguments)


def _say(job: Job, line: str) -> None:
    sys.stderr.write(f"quorate pipeline {job.name}: {line}\n")
