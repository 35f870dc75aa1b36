"""`quorate simulate`: run seeds of the simulator, or replay one.

Prints one line a seed and, for a seed that fails, its fault mix, its last transcript lines and the
command that repeats it. Exit status 1 when any seed failed.
"""

from __future__ import annotations

import argparse
import os
import sys

from quorate.cli.arguments import number
from quorate.settings.numbers import is_whole_number

LINES_DEFAULT = 40


def parse_seeds(text: str) -> tuple[int, int]:
    """`A-B` or a single seed `A`. Raises ValueError that says what is wrong."""
    first, dash, last = text.partition("-")
    if not is_whole_number(first) or (dash and not is_whole_number(last)):
        raise ValueError(f"{text!r} is neither a seed nor a range such as 1-200")
    seeds = int(first), int(last or first)
    if seeds[0] > seeds[1]:
        raise ValueError(f"{text!r} begins behind its end")
    return seeds


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "simulate",
        help="run seeds of the deterministic simulator",
        description="Run simulated quorums under drawn faults and check every invariant.",
    )
    parser.add_argument(
        "--seeds", type=_seeds, required=True, metavar="A-B", help="seeds to run, or one to replay"
    )
    parser.add_argument(
        "--jobs", type=number(1), default=None, metavar="N", help="processes; default: one a core"
    )
    parser.add_argument(
        "--lines",
        type=number(1),
        default=LINES_DEFAULT,
        metavar="N",
        help=f"transcript lines to show of a seed that fails (default {LINES_DEFAULT})",
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
    from quorate.sim.planted import BUGS
    from quorate.sim.simulation import ALL_LINES, run_seeds

    if arguments.bug is not None and arguments.bug not in BUGS:
        print(f"--bug: there is no {arguments.bug!r}, only {', '.join(BUGS)}", file=sys.stderr)
        return 1
    first, last = arguments.seeds
    results = run_seeds(
        first,
        last,
        jobs=arguments.jobs or os.cpu_count() or 1,
        bug=arguments.bug,
        digest=arguments.digest,
        lines=ALL_LINES if arguments.transcript else arguments.lines,
    )
    failed = []
    for result in results:
        if arguments.transcript and result.failure is None:
            print(result.tail)
        digest = f" {result.digest}" if arguments.digest else ""
        print(result.report() + digest, flush=True)
        if result.failure is not None:
            failed.append(result.seed)
    print(f"{last - first + 1} seeds, {len(failed)} failed", *failed)
    return 1 if failed else 0


def _seeds(text: str) -> tuple[int, int]:
    try:
        return parse_seeds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
