"""Notes the seeds that catch the mutants in services/quorate/sim/mutants/, next to each mutant.

python tools/note_seeds.py                  every bug
python tools/note_seeds.py --bugs NAME ...  some of them
python tools/note_seeds.py --check          changes nothing; exit status 1 when a bug lacks a seed

A bug keeps those of its noted seeds that still catch it. Where none does, its seeds are run from 1
on, as many as it is given, until a quick world catches it or its time is over. Each result is
written immediately: the same command continues where it was stopped. After a change of draws or
of the core this takes minutes; the exit status is 1 when no seed was found for a bug.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.cli.argument_types import duration_s, number
from quorate.sim.mutants.registry import MUTANTS
from quorate.sim.parallel_runner import begin_worker
from quorate.sim.runner import run_seed

if TYPE_CHECKING:
    from collections.abc import Iterator

MUTANTS_FOLDER = Path(__file__).resolve().parent.parent / "services" / "quorate" / "sim" / "mutants"
# A test runs the first noted seed of each bug: one whose world is over so soon is not bettered.
QUICK_S = 1.0
_NAME, _WHAT, _SEEDS = range(3)


@dataclass(frozen=True, slots=True)
class Noted:
    """The seeds that catch one bug now; `is_new` where none of those before does."""

    bug: str
    seeds: tuple[int, ...]
    is_new: bool = False


def look(name: str, *, limit_s: float, is_searched: bool) -> Noted:
    """The noted seeds that still catch this bug; else one that does, if it `is_searched`."""
    held = tuple(seed for seed in MUTANTS[name].seeds if catches(name, seed))
    if held or not is_searched:
        return Noted(name, held)
    found = search(name, limit_s)
    return Noted(name, () if found is None else (found,), is_new=True)


def catches(name: str, seed: int) -> bool:
    """True when this seed fails with the bug, and in a world of its own only with it."""
    if run_seed(seed, bug=name, lines=0).failure is None:
        return False
    return not MUTANTS[name].world or run_seed(seed, world_of=name, lines=0).failure is None


def search(name: str, limit_s: float) -> int | None:
    """The first seed whose world is quick, or else the quickest one in that time."""
    until_s = time.monotonic() + limit_s
    best: tuple[float, int] | None = None
    for seed in range(1, MUTANTS[name].within + 1):
        if time.monotonic() > until_s:
            break
        began_s = time.process_time()
        if catches(name, seed):
            took_s = time.process_time() - began_s
            best = min(best or (took_s, seed), (took_s, seed))
            if took_s < QUICK_S:
                break
    return None if best is None else best[1]


# --- the files ------------------------------------------------------------------------------------


def write(noted: Noted, folder: Path = MUTANTS_FOLDER) -> None:
    """Replace the seeds of a bug by these. Raises ValueError for a bug in no file."""
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        place = _place(text, noted.bug)
        if place is not None:
            begin, end = place
            path.write_text(f"{text[:begin]}{noted.seeds!r}{text[end:]}", encoding="utf-8")
            return
    raise ValueError(f"no file in {folder} plants {noted.bug}")


def _place(text: str, bug: str) -> tuple[int, int] | None:
    """The places in a file at which the seeds of that bug begin and end."""
    for node in ast.walk(ast.parse(text)):
        is_bug = isinstance(node, ast.Call) and ast.unparse(node.func) == "Mutant"
        if not is_bug or not isinstance(node, ast.Call) or len(node.args) <= _SEEDS:
            continue
        name, seeds = node.args[_NAME], node.args[_SEEDS]
        if isinstance(name, ast.Constant) and name.value == bug:
            assert seeds.end_lineno is not None
            assert seeds.end_col_offset is not None
            begin = _offset(text, seeds.lineno, seeds.col_offset)
            return begin, _offset(text, seeds.end_lineno, seeds.end_col_offset)
    return None


def _offset(text: str, line: int, column_bytes: int) -> int:
    """A place that a syntax tree names, in characters."""
    lines = text.splitlines(keepends=True)
    within = lines[line - 1].encode()[:column_bytes].decode()
    return sum(map(len, lines[: line - 1])) + len(within)


# --- the command ----------------------------------------------------------------------------------


def look_at_all(
    names: list[str], *, jobs: int, limit_s: float, is_searched: bool
) -> Iterator[Noted]:
    """The results for these bugs, as they come."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, begin_worker) as pool:
        under_way = {
            pool.submit(look, name, limit_s=limit_s, is_searched=is_searched) for name in names
        }
        while under_way:
            over, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in over:
                yield future.result()


def main(arguments: list[str] | None = None, folder: Path = MUTANTS_FOLDER) -> int:
    """Look at each bug, and write what is new; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="look at noted seeds, change nothing")
    parser.add_argument(
        "--bugs", nargs="+", choices=list(MUTANTS), default=list(MUTANTS), metavar="NAME"
    )
    parser.add_argument("--jobs", type=number(1), default=os.cpu_count() or 1, metavar="N")
    parser.add_argument(
        "--limit", type=duration_s, default=duration_s("5m"), metavar="TIME", help="for each bug"
    )
    options = parser.parse_args(arguments)
    missing: list[str] = []
    for noted in look_at_all(
        options.bugs, jobs=options.jobs, limit_s=options.limit, is_searched=not options.check
    ):
        if not noted.seeds:
            missing.append(noted.bug)
            print(f"{noted.bug}: no seed catches it", file=sys.stderr, flush=True)
        elif noted.seeds != MUTANTS[noted.bug].seeds:
            what = "is caught by" if noted.is_new else "is still caught by"
            print(f"{noted.bug} {what} {', '.join(map(str, noted.seeds))}", flush=True)
            if not options.check:
                write(noted, folder)
    print(f"{len(options.bugs) - len(missing)} of {len(options.bugs)} bugs have a seed")
    return int(bool(missing))


if __name__ == "__main__":
    raise SystemExit(main())
