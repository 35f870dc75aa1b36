"""`quorate simulate`: run seeds of the simulator, or replay one.

Prints one line a seed and, for a seed that fails, its fault mix, the steps that matter, what was
violated and the command that repeats it. Exit status 1 when any seed failed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.cli.arguments import duration_s, number
from quorate.settings.numbers import is_whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.sim.simulation import SeedResult

LINES_DEFAULT: Final = 40
# So many failed seeds are named at the end of a run, the first ones.
NAMED_MAX: Final = 20
INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Seeds:
    """All from `first` to `last`; without `last` for as long as somebody wants."""

    first: int
    last: int | None

    def __iter__(self) -> Iterator[int]:
        if self.last is None:
            return itertools.count(self.first)
        return iter(range(self.first, self.last + 1))

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}-{'' if self.last is None else self.last}"


def parse_seeds(text: str) -> Seeds:
    """`A-B`, `A-` without an end, or one seed `A`. Raises ValueError that says what is wrong."""
    first, dash, last = text.partition("-")
    if not is_whole_number(first) or (last and not is_whole_number(last)):
        raise ValueError(f"{text!r} is neither a seed nor a range such as 1-200 or 1-")
    if not dash:
        last = first
    seeds = Seeds(int(first), int(last) if last else None)
    if seeds.last is not None and seeds.first > seeds.last:
        raise ValueError(f"{text!r} begins behind its end")
    return seeds


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "simulate",
        help="run seeds of the deterministic simulator",
        description="Run simulated quorums under drawn faults and check every invariant. "
        "Without an end it runs until Ctrl-C.",
    )
    parser.add_argument(
        "--seeds",
        type=_seeds,
        metavar="A-B",
        help="seeds to run, or one to replay; A- has no end; default: from what the clock says on",
    )
    parser.add_argument(
        "--for",
        dest="for_s",
        type=duration_s,
        metavar="TIME",
        help="begin no other seed after so long: 90s, 10m, 2h",
    )
    parser.add_argument(
        "--until-failure", action="store_true", help="stop at the first seed that fails"
    )
    parser.add_argument(
        "--jobs", type=number(1), default=None, metavar="N", help="processes; default: one a core"
    )
    parser.add_argument(
        "--lines",
        type=number(1),
        default=LINES_DEFAULT,
        metavar="N",
        help=f"steps to show of a seed that fails (default {LINES_DEFAULT})",
    )
    parser.add_argument(
        "--transcript", action="store_true", help="print the whole transcript of every seed"
    )
    parser.add_argument(
        "--digest", action="store_true", help="print the hash of every seed's transcript"
    )
    parser.add_argument("--bug", metavar="NAME", help="plant this bug first, to see it caught")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the seeds in order of their numbers."""
    from concurrent.futures.process import BrokenProcessPool

    from quorate.sim.planted import BUGS
    from quorate.sim.simulation import ALL_LINES
    from quorate.sim.swarm import run_seeds

    if arguments.bug is not None and arguments.bug not in BUGS:
        print(f"--bug: there is no {arguments.bug!r}, only {', '.join(BUGS)}", file=sys.stderr)
        return 1
    seeds = arguments.seeds
    if seeds is None:
        seeds = Seeds(time.time_ns() // 1_000_000, None)
        print(f"from a seed that the clock chose; repeat: {_command(seeds, arguments)}", flush=True)
    jobs = 1 if seeds.first == seeds.last else arguments.jobs or os.cpu_count() or 1
    results = run_seeds(
        _until(seeds, arguments.for_s),
        jobs=jobs,
        bug=arguments.bug,
        digest=arguments.digest,
        lines=ALL_LINES if arguments.transcript else arguments.lines,
    )
    tally = Tally()
    status = 0
    try:
        _show(results, tally, arguments)
    except KeyboardInterrupt:
        status = 0 if seeds.last is None else INTERRUPTED
    except BrokenProcessPool:
        print(
            "a process that ran seeds was killed; with fewer --jobs less memory is needed",
            file=sys.stderr,
        )
        status = 1
    finally:
        results.close()
    print(tally, flush=True)
    return 1 if tally.failed else status


@dataclass(slots=True)
class Tally:
    """What came of the seeds so far."""

    count: int = 0
    first: int = 0
    last: int = 0
    failed: int = 0
    named: list[int] = field(default_factory=list)

    def add(self, result: SeedResult) -> None:
        """One more."""
        if not self.count:
            self.first = result.seed
        self.count += 1
        self.last = result.seed
        if result.failure is not None:
            self.failed += 1
            if self.failed <= NAMED_MAX:
                self.named.append(result.seed)

    def __str__(self) -> str:
        if not self.count:
            return "no seed was run to its end"
        which = f"seed {self.first}" if self.count == 1 else f"seeds {self.first}-{self.last}"
        words = [f"{which}: {self.count} run, {self.failed} failed", *map(str, self.named)]
        return " ".join([*words, "..."] if self.failed > NAMED_MAX else words)


def _show(results: Iterable[SeedResult], tally: Tally, arguments: argparse.Namespace) -> None:
    for result in results:
        tally.add(result)
        if arguments.transcript and result.failure is None:
            print(result.told)
        digest = f" {result.digest}" if arguments.digest else ""
        print(result.report() + digest, flush=True)
        if result.failure is not None and arguments.until_failure:
            return


def _until(seeds: Iterable[int], for_s: int | None) -> Iterator[int]:
    """The seeds that there is time to begin."""
    end_s = None if for_s is None else time.monotonic() + for_s
    for seed in seeds:
        if end_s is not None and time.monotonic() >= end_s:
            return
        yield seed


def _command(seeds: Seeds, arguments: argparse.Namespace) -> str:
    """The command that runs these seeds again."""
    words = ["quorate simulate --seeds", str(seeds)]
    if arguments.for_s is not None:
        words += ["--for", f"{arguments.for_s}s"]
    if arguments.until_failure:
        words.append("--until-failure")
    if arguments.bug is not None:
        words += ["--bug", arguments.bug]
    return " ".join(words)


def _seeds(text: str) -> Seeds:
    try:
        return parse_seeds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
