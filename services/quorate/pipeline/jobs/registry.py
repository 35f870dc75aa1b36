"""The jobs by name: what each answers, which tables it has, what it takes beside the log.

Nothing here needs Spark, so that `quorate pipeline --help` works without it. A job with tables is a
module with

    SCHEMAS: dict[str, StructType]
    def tables(log: DataFrame, values: Mapping[str, object]) -> dict[str, DataFrame]

where both have the job's table names as keys and `values` those of its options; `log` is a frame as
the source gives it, of one log unless the job says `reads_all_logs`. A job without tables has

    def run(arguments: argparse.Namespace) -> int
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.settings.numbers import INT64_MAX, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable


class PipelineError(Exception):
    """The job cannot do what it was asked; the message names the option and the remedy."""


@dataclass(frozen=True, slots=True)
class JobOption:
    """A flag of one job: `--flap-count`, the value of which is `values["flap_count"]`."""

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


@dataclass(frozen=True, slots=True)
class Job:
    """One question: `summary` is its line in the list, `description` what its own help says."""

    name: str
    summary: str
    module: str
    tables: tuple[str, ...] = ()
    description: str = ""
    options: tuple[JobOption, ...] = ()
    # Rows of every directory that is named, uncommitted tails too, instead of the longest log's.
    reads_all_logs: bool = False
    # The columns of these types come typed, beside the payload.
    record_types: tuple[str, ...] = ()


def number(minimum: int = 0, maximum: int = INT64_MAX) -> Callable[[str], int]:
    """A whole number within bounds, as a flag's type."""

    def parse(text: str) -> int:
        try:
            return whole_number(text, minimum=minimum, maximum=maximum)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


JOBS: Final = {
    job.name: job
    for job in (
        Job(
            "elections",
            "who led each epoch, from when to when, and how long nobody did before",
            "quorate.pipeline.jobs.elections",
            tables=("elections",),
        ),
    )
}
