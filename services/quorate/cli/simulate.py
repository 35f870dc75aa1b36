"""`quorate simulate`: run, replay and shrink simulation seeds.

Prints one line per seed and, for a seed that fails, its fault mix, the relevant steps, the
violation and the command that repeats it; on request, also the smallest case that fails the same
way. Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.cli.argument_types import duration_s, number
from quorate.records.value_types import value_type
from quorate.settings.input_files import read_input
from quorate.settings.integers import is_whole_number
from quorate.settings.regular_files import NotRegularFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.sim.cases.case import Case
    from quorate.sim.runner import SeedResult

LINES_DEFAULT: Final = 40
# The number of failed seeds named at the end of a run, the first ones.
NAMED_MAX: Final = 20
INTERRUPTED: Final = 130
# Seconds spent on shrinking each failure.
SHRINK_S: Final = 120


@value_type
class Seeds:
    """The seeds from `first` to `last`; without `last` they have no end."""

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
    """Parse `A-B`, `A-` without an end, or one seed `A`. Raises ValueError with the reason."""
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
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--seeds",
        type=_seeds,
        metavar="A-B",
        help="seeds to run, or one to replay; A- has no end; default: from what the clock says on",
    )
    what.add_argument("--case", type=Path, metavar="FILE", help="replay a case that was kept")
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
    parser.add_argument(
        "--shrink",
        type=Path,
        metavar="FOLDER",
        help="keep of each failure a smaller case there, which is looked for up to two minutes",
    )
    parser.add_argument("--bug", metavar="NAME", help="plant this bug first, to see it caught")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the seeds in order of their numbers, or the case."""
    from quorate.sim.mutants.registry import MUTANTS

    if arguments.bug is not None and arguments.bug not in MUTANTS:
        print(f"--bug: there is no {arguments.bug!r}, only {', '.join(MUTANTS)}", file=sys.stderr)
        return 1
    return _run_seeds(arguments) if arguments.case is None else _run_case(arguments)


def _run_seeds(arguments: argparse.Namespace) -> int:
    from concurrent.futures.process import BrokenProcessPool

    from quorate.sim.parallel_runner import run_seeds

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
        lines=_lines(arguments),
    )
    tally = SeedTally()
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


def _run_case(arguments: argparse.Namespace) -> int:
    from quorate.sim.cases.case import CaseError, parse_case
    from quorate.sim.runner import run_case

    try:
        case = parse_case(read_input(str(arguments.case)).decode())
    except (OSError, NotRegularFileError, UnicodeDecodeError, CaseError) as error:
        print(f"--case {arguments.case}: {error}", file=sys.stderr)
        return 1
    if arguments.bug is not None:
        case = replace(case, bug=arguments.bug)
    file = str(arguments.case)
    result = run_case(case, digest=arguments.digest, lines=_lines(arguments), file=file)
    _print_result(result, arguments)
    if result.failure is not None and arguments.shrink is not None:
        _shrink(case, arguments)
    return 0 if result.failure is None else 1


def _lines(arguments: argparse.Namespace) -> int:
    from quorate.sim.runner import ALL_LINES

    lines: int = ALL_LINES if arguments.transcript else arguments.lines
    return lines


def _shrink(case: Case, arguments: argparse.Namespace) -> None:
    """Print the smallest case that fails the same way, and its failure."""
    from quorate.sim.cases.case import format_case
    from quorate.sim.cases.reducer import shrink_case
    from quorate.sim.runner import run_case

    until_s = time.monotonic() + SHRINK_S
    smaller = shrink_case(case, lambda: time.monotonic() >= until_s)
    if smaller is None:
        print(f"seed {case.seed}: what is done to it, written down, does not fail alike")
        return
    name = smaller.about.partition(":")[0]
    path = arguments.shrink / f"{name}-{case.seed}.case"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = format_case(smaller)
    path.write_text(text, encoding="utf-8")
    print(run_case(smaller, lines=arguments.lines, file=str(path)).report())
    print(text, end="", flush=True)


@dataclass(slots=True)
class SeedTally:
    """Counts of the results so far."""

    count: int = 0
    first: int = 0
    last: int = 0
    failed: int = 0
    named: list[int] = field(default_factory=list)

    def add(self, result: SeedResult) -> None:
        """Add one result."""
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


def _show(results: Iterable[SeedResult], tally: SeedTally, arguments: argparse.Namespace) -> None:
    from quorate.sim.runner import drawn_case

    for result in results:
        tally.add(result)
        _print_result(result, arguments)
        if result.failure is None:
            continue
        if arguments.shrink is not None:
            _shrink(drawn_case(result.seed, bug=result.bug, world_of=result.bug), arguments)
        if arguments.until_failure:
            return


def _print_result(result: SeedResult, arguments: argparse.Namespace) -> None:
    if arguments.transcript and result.failure is None:
        print(result.told)
    digest = f" {result.digest}" if arguments.digest else ""
    print(result.report() + digest, flush=True)


def _until(seeds: Iterable[int], for_s: int | None) -> Iterator[int]:
    """The seeds that can be started in the time limit."""
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
