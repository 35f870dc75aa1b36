"""All jobs by name: summary, help text, tables and options; needs no Spark.

So `quorate pipeline --help` works without Spark. A job with tables is a module with

    SCHEMAS: dict[str, StructType]
    def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]

where both have the job's table names as keys and `values` has the values of its options; `log` is
the source's frame, of one log unless the job has `reads_all_logs`. A job without tables has

    def run(arguments: argparse.Namespace) -> int
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from quorate.pipeline.jobs.log_position import parse_position
from quorate.records.value_types import value_type
from quorate.settings.integers import INT64_MAX, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable


class PipelineError(Exception):
    """The job cannot run as requested; the message names the option and the remedy."""


@value_type
class JobOption:
    """A flag of one job: the value of `--flap-count` is `values["flap_count"]`."""

    flag: str
    help: str
    parse: Callable[[str], object]
    metavar: str
    default: object = None
    is_required: bool = False

    @property
    def name(self) -> str:
        """The key among the values."""
        return self.flag.removeprefix("--").replace("-", "_")


@value_type
class Job:
    """One analysis: `summary` is its line in the list, `description` is for its own help."""

    name: str
    summary: str
    module: str
    tables: tuple[str, ...] = ()
    description: str = ""
    options: tuple[JobOption, ...] = ()
    # Read the rows of all named directories, including uncommitted tails, instead of one log.
    reads_all_logs: bool = False
    # Record types that are read as typed columns instead of the payload.
    record_types: tuple[str, ...] = ()


def number(minimum: int = 0, maximum: int = INT64_MAX) -> Callable[[str], int]:
    """A whole number within bounds, as a flag's type."""

    def parse(text: str) -> int:
        try:
            return whole_number(text, minimum=minimum, maximum=maximum)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def yes_or_no(text: str) -> str:
    """Check for `yes` or `no`, as a flag's type."""
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text


OPEN_INTERVALS: Final = (
    "What still lasts at the end of the log has no end, and its duration is up to the log's last"
    " timestamp; what had begun before has no start, and its duration is from the first."
)
FROM_A_SNAPSHOT: Final = (
    "Where the log begins with a snapshot, what is in it starts at the last record that it covers,"
    " although it may have been so for longer."
)
INGEST: Final = Job(
    "ingest",
    "stream the log to Parquet by day and record type, each record exactly once",
    "quorate.pipeline.jobs.ingest",
    description="Exactly once holds over restarts and changes of leader: it is that of Spark's file"
    " sink with a checkpoint, for readers of the output with Spark. Others may see files"
    " of a batch that was cut short, too. With --every-s it goes on until it is ended.",
    options=(
        JobOption("--output", "the directory to write to", str, "DIR", is_required=True),
        JobOption("--checkpoint", "what has been read so far (_checkpoint in it)", str, "DIR"),
        JobOption("--every-s", "go on, with a batch so often", number(1), "N"),
        JobOption(
            "--keep-days",
            "keep the newest N days: at its start it removes what is older",
            number(1),
            "N",
        ),
        JobOption("--max-offsets-per-batch", "how much a batch may hold", number(1), "N"),
        JobOption(
            "--go-on-after-loss",
            "yes: go on where records are gone (from the snapshot) or cannot be read (no)",
            yes_or_no,
            "yes|no",
            default="no",
        ),
    ),
)

_MOMENT: Final = "up to that offset, or that time in ISO 8601"
_IMAGE_RECORDS: Final = (
    "TopicRecord",
    "RemoveTopicRecord",
    "PartitionRecord",
    "PartitionChangeRecord",
    "ClearElrRecord",
    "RegisterBrokerRecord",
    "UnregisterBrokerRecord",
    "FenceBrokerRecord",
    "UnfenceBrokerRecord",
    "BrokerRegistrationChangeRecord",
    "ConfigRecord",
    "AccessControlEntryRecord",
    "RemoveAccessControlEntryRecord",
)

JOBS: Final = {
    job.name: job
    for job in (
        INGEST,
        Job(
            "elections",
            "who led each epoch, from when to when, and how long nobody did before",
            "quorate.pipeline.jobs.elections",
            tables=("elections",),
            description=f"{OPEN_INTERVALS} leaderless_ms is the most it can be: it counts from the"
            " last record of the epoch before, and a leader may have had nothing to write.",
        ),
        Job(
            "membership",
            "who came, went or moved among the voters, and each set of them",
            "quorate.pipeline.jobs.membership",
            tables=("changes", "voter_sets"),
            description=OPEN_INTERVALS,
        ),
        Job(
            "features",
            "levels of metadata.version, kraft.version and other features, and when they changed",
            "quorate.pipeline.jobs.features",
            tables=("features",),
        ),
        Job(
            "brokers",
            "each broker's registrations, sessions, fenced times and flapping",
            "quorate.pipeline.jobs.brokers",
            tables=("events", "sessions", "fencing", "flapping", "totals"),
            description=OPEN_INTERVALS,
            options=(
                JobOption(
                    "--flap-window-s",
                    "how close fences are that make flapping (3600)",
                    number(1, 31 * 86_400),
                    "N",
                    default=3600,
                ),
                JobOption(
                    "--flap-count",
                    "how many fences within a window make it (3)",
                    number(2, 1_000_000),
                    "N",
                    default=3,
                ),
            ),
        ),
        Job(
            "health",
            "what to watch of a quorum against its thresholds: ok, warn or critical",
            "quorate.pipeline.jobs.health",
            tables=("health",),
            reads_all_logs=True,
        ),
        Job(
            "compare",
            "whether voters' logs agree: where they part, lag, damage, epochs",
            "quorate.pipeline.jobs.compare",
            tables=("logs", "divergence", "epochs"),
            reads_all_logs=True,
        ),
        Job(
            "sizes",
            "which record types and topics the bytes go to, and what a snapshot saves",
            "quorate.pipeline.jobs.sizes",
            tables=("by_type", "by_topic"),
        ),
        Job(
            "partitions",
            "leaders and ISRs of partitions, when too few were in sync, unclean elections, churn",
            "quorate.pipeline.jobs.partitions",
            tables=("history", "under_replicated", "offline", "unclean", "churn"),
            description=FROM_A_SNAPSHOT,
            record_types=(
                "PartitionRecord",
                "PartitionChangeRecord",
                "TopicRecord",
                "RemoveTopicRecord",
            ),
        ),
        Job(
            "configs",
            "what was set on topics and brokers, from when to when",
            "quorate.pipeline.jobs.configs",
            tables=("configs",),
            description=FROM_A_SNAPSHOT,
            record_types=("ConfigRecord", "TopicRecord", "RemoveTopicRecord"),
        ),
        Job(
            "acls",
            "who was allowed or denied what, from when to when",
            "quorate.pipeline.jobs.acls",
            tables=("acls",),
            description=FROM_A_SNAPSHOT,
            record_types=("AccessControlEntryRecord", "RemoveAccessControlEntryRecord"),
        ),
        Job(
            "image",
            "topics, partitions, brokers, configs and ACLs as they were at one moment",
            "quorate.pipeline.jobs.image_tables",
            tables=("topics", "partitions", "brokers", "configs", "acls"),
            options=(
                JobOption("--at", f"{_MOMENT} (the end of the log)", parse_position, "OFFSET|TIME"),
            ),
            record_types=_IMAGE_RECORDS,
        ),
        Job(
            "diff",
            "what came, went or changed between two moments",
            "quorate.pipeline.jobs.image_diff",
            tables=("diff",),
            options=(
                JobOption("--from", _MOMENT, parse_position, "OFFSET|TIME", is_required=True),
                JobOption("--to", f"{_MOMENT} (the end of the log)", parse_position, "OFFSET|TIME"),
            ),
            record_types=_IMAGE_RECORDS,
        ),
        Job(
            "report",
            "one HTML page with verdicts, plots and tables of the above",
            "quorate.pipeline.jobs.report",
            options=(
                JobOption("--html", "the file to write (report.html)", str, "FILE", "report.html"),
            ),
        ),
    )
}
