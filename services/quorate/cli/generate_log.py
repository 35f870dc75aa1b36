"""`quorate generate-log`: write a synthetic metadata log of a week of a cluster.

For tests, measurements and demonstrations that need a large log with a history. The same arguments
give the same bytes.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Final

from quorate.cli.argument_types import number
from quorate.cli.output import CommandError, fail
from quorate.sim.log_generator.options import (
    DAY_MS,
    HOUR_MS,
    MIB,
    TOPICS_DEFAULT,
    TOPICS_MAX,
    WeekOptions,
)
from quorate.storage.errors import StorageError
from quorate.storage.layout import META_PROPERTIES

if TYPE_CHECKING:
    import argparse

_DAYS_MAX: Final = 366
_BROKERS_MIN: Final = 3
_BROKERS_MAX: Final = 2000
_RECORDS_MAX: Final = 1_000_000_000
_VOTERS_MAX: Final = 9
_SEGMENT_BYTES_MIN: Final = 1024
_SNAPSHOT_BYTES_MIN: Final = 1024
_TELL_EVERY_S: Final = 2.0
UNFINISHED: Final = ".unfinished"
_DEFAULTS: Final = WeekOptions(seed=1)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "generate-log",
        help="write the log of a week that never was",
        description="Write the metadata log directory that some days of a cluster would have left:"
        " restarts, crashes, elections, changes of the voters, topics that come and go. The same"
        " arguments give the same bytes.",
    )
    parser.add_argument("directory", metavar="DIR", help="what to write: new, or empty")
    add = parser.add_argument
    add("--seed", type=number(), default=_DEFAULTS.seed, metavar="N", help="what to draw (1)")
    add(
        "--days",
        type=number(1, _DAYS_MAX),
        default=_DEFAULTS.days,
        metavar="N",
        help=f"how long it lasts ({_DEFAULTS.days})",
    )
    add(
        "--brokers",
        type=number(_BROKERS_MIN, _BROKERS_MAX),
        default=_DEFAULTS.brokers,
        metavar="N",
        help=f"brokers of the first day ({_DEFAULTS.brokers})",
    )
    add(
        "--topics",
        type=number(1, 20 * TOPICS_MAX),
        metavar="N",
        help=f"topics of the first day ({TOPICS_DEFAULT}; with --records what goes with those)",
    )
    add(
        "--records",
        type=number(1, _RECORDS_MAX),
        metavar="N",
        help="about how many records; brokers and topics take some in any case"
        " (what a cluster of that size would write)",
    )
    add(
        "--voters",
        type=number(1, _VOTERS_MAX),
        default=_DEFAULTS.voters,
        metavar="N",
        help="write so many controllers' directories, as DIR/<node id>; one is DIR itself (1)",
    )
    _add_sizes(parser)
    parser.set_defaults(run=run)


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add the flags with the sizes of Kafka's settings of the same names."""
    add = parser.add_argument
    add(
        "--segment-bytes",
        type=number(_SEGMENT_BYTES_MIN),
        default=_DEFAULTS.segment_bytes,
        metavar="N",
        help=f"metadata.log.segment.bytes ({_DEFAULTS.segment_bytes // MIB} MiB)",
    )
    add(
        "--snapshot-bytes",
        type=number(_SNAPSHOT_BYTES_MIN),
        default=_DEFAULTS.snapshot_bytes,
        metavar="N",
        help="metadata.log.max.record.bytes.between.snapshots"
        f" ({_DEFAULTS.snapshot_bytes // MIB} MiB)",
    )
    add(
        "--retention-bytes",
        type=number(-1),
        default=_DEFAULTS.retention_bytes,
        metavar="N",
        help="metadata.max.retention.bytes: old snapshots and segments go above it (-1: all stays)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the directory; nothing is left of it if that fails."""
    options = WeekOptions(
        seed=arguments.seed,
        days=arguments.days,
        brokers=arguments.brokers,
        topics=arguments.topics,
        records=arguments.records,
        voters=arguments.voters,
        segment_bytes=arguments.segment_bytes,
        snapshot_bytes=arguments.snapshot_bytes,
        retention_bytes=arguments.retention_bytes,
    )
    directory = arguments.directory
    try:
        check_directory(directory)
        print(generate_log(directory, options))
    except CommandError as error:
        return fail(str(error))
    except (OSError, StorageError) as error:
        return fail(f"DIR: {directory}: {error}; choose another place, or make room")
    return 0


def check_directory(directory: str) -> None:
    """Raises CommandError if the directory is not empty, or the name is."""
    if not directory:
        raise CommandError("DIR: it is empty; name a new directory")
    if not os.path.lexists(directory):
        return
    if not os.path.isdir(directory):
        raise CommandError(f"DIR: {directory} is no directory; name a new one")
    if os.listdir(directory):
        raise CommandError(f"DIR: {directory} is not empty; name a new directory, or empty it")


def generate_log(directory: str, options: WeekOptions) -> str:
    """Write the directory, which is new or empty, and summarize the result."""
    from quorate.sim.log_generator.generator import generate

    root = os.path.abspath(directory)
    had_it = os.path.isdir(root)
    begun_s = time.monotonic()
    # An incomplete log would open as if it were complete, so it is kept here until it is complete:
    # a run that is killed leaves this and nothing else.
    unfinished = os.path.join(root, UNFINISHED)
    try:
        os.makedirs(unfinished, exist_ok=True)
        generated = generate(unfinished, options, _Progress(options))
        # The file that is needed to open a directory comes last.
        for name in sorted(os.listdir(unfinished), key=lambda name: name == META_PROPERTIES):
            os.rename(os.path.join(unfinished, name), os.path.join(root, name))
        os.rmdir(unfinished)
    except BaseException:
        shutil.rmtree(unfinished if had_it else root, ignore_errors=True)
        raise
    seconds = time.monotonic() - begun_s
    return (
        f"{directory}: {generated.record_count} records, the last epoch is {generated.epoch}"
        f" ({seconds:.1f} s)"
    )


class _Progress:
    """Reports progress on stderr now and then in a long run."""

    def __init__(self, options: WeekOptions) -> None:
        self._days = options.days
        self._begun_s = self._told_s = time.monotonic()

    def __call__(self, record_count: int, elapsed_ms: int) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s < _TELL_EVERY_S:
            return
        self._told_s = now_s
        day, hour = elapsed_ms // DAY_MS + 1, elapsed_ms % DAY_MS // HOUR_MS
        rate = record_count / (now_s - self._begun_s)
        print(
            f"day {day} of {self._days}, {hour:02d}:00: {record_count} records,"
            f" {rate:.0f} a second",
            file=sys.stderr,
        )
