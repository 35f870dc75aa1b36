"""Measure how soon drawn seeds catch each mutant: `python -m tests.simulation.catching`.

From each of several starts that the clock chose, seeds are run one after the other with the mutant,
in worlds as they are drawn, until one fails that is clean without it. It is given up once both
bounds are passed, that of seeds and that of CPU time; it counts as caught when the median over all
starts is within one of them. What was measured is kept in a file, line by line: the same command
continues where it was stopped, and prints the table at its end.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.cli.argument_types import duration_s, number
from quorate.sim.mutants.registry import MUTANTS
from quorate.sim.parallel_runner import begin_worker
from quorate.sim.runner import run_seed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

SEEDS: Final = 300
CPU_S: Final = 200
STARTS: Final = 5
# Starts are so far apart that no two searches meet.
APART: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Search:
    """One bug, from one start on."""

    bug: str
    start: int


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search: without `by` nothing was found in so many seeds.

    `alarms` are seeds that fail without the bug, too.
    """

    bug: str
    start: int
    seeds: int
    cpu_s: float
    by: str | None
    alarms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits at which a search is given up, and after which none is begun."""

    seeds: int
    cpu_s: int


def search(task: Search, bounds: Bounds) -> Found:
    """Run seeds until one fails because of the bug."""
    began_s = time.process_time()
    alarms: list[int] = []
    count = 0
    while count < bounds.seeds or time.process_time() - began_s < bounds.cpu_s:
        seed = task.start + count
        count += 1
        failure = run_seed(seed, bug=task.bug, in_its_world=False, lines=0).failure
        if failure is None:
            continue
        cpu_s = time.process_time() - began_s
        if run_seed(seed, lines=0).failure is None:
            return Found(task.bug, task.start, count, cpu_s, failure.name, tuple(alarms))
        alarms.append(seed)
    cpu_s = time.process_time() - began_s
    return Found(task.bug, task.start, count, cpu_s, None, tuple(alarms))


# --- the file -------------------------------------------------------------------------------------


class Results:
    """The results so far: a line with the starts, and one for each search that is over."""

    def __init__(self, path: Path, starts: int) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        known = json.loads(lines[0])["starts"] if lines else []
        first = time.time_ns() // 1_000_000
        drawn = [first + APART * index for index in range(len(known), starts)]
        self.starts: list[int] = [*known, *drawn][:starts]
        self.found = [_found(json.loads(line)) for line in lines[1:]]
        if len(known) < starts:
            rest = [json.dumps({"starts": self.starts}), *lines[1:]]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(rest) + "\n", encoding="utf-8")

    def missing(self, bugs: list[str]) -> list[Search]:
        """Searches that are still to be run: each bug from the first start, then from the next."""
        known = {(found.bug, found.start) for found in self.found}
        wanted = [Search(bug, start) for start in self.starts for bug in bugs]
        return [task for task in wanted if (task.bug, task.start) not in known]

    def add(self, found: Found) -> None:
        """One search is over."""
        self.found.append(found)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")


def _found(values: dict[str, object]) -> Found:
    return Found(**{**values, "alarms": tuple(values["alarms"])})  # type: ignore[arg-type]


def table(found: list[Found], bugs: list[str], starts: list[int], bounds: Bounds) -> Iterator[str]:
    """The table as Markdown, a row for each bug, and a line that sums up."""
    yield "| bug | caught from | seeds, median (all) | CPU seconds, median | seen by |"
    yield "|---|---|---|---|---|"
    caught = measured = 0
    for bug in bugs:
        rows = [one for one in found if one.bug == bug and one.start in starts]
        if not rows:
            continue
        measured += 1
        seeds = statistics.median_low([_or_never(one, one.seeds) for one in rows])
        cpu_s = statistics.median_low([_or_never(one, one.cpu_s) for one in rows])
        is_caught = seeds <= bounds.seeds or cpu_s <= bounds.cpu_s
        caught += is_caught
        each = ", ".join(f"{one.seeds}" if one.by else f">{one.seeds}" for one in rows)
        names = Counter(one.by for one in rows if one.by)
        yield (
            f"| `{bug}` | {sum(names.values())} of {len(rows)} | "
            f"{f'{seeds:.0f}' if is_caught else '**not caught**'} ({each}) | "
            f"{f'{cpu_s:.0f}' if is_caught else '-'} | {', '.join(names) or '-'} |"
        )
    yield ""
    yield f"{caught} of {measured} bugs are caught, from {len(starts)} starts: {starts}"
    alarms = sorted({seed for one in found for seed in one.alarms})
    if alarms:
        yield f"these seeds fail without a bug: {' '.join(map(str, alarms))}"


def _or_never(one: Found, value: float) -> float:
    return value if one.by else float("inf")


# --- the command ----------------------------------------------------------------------------------


def run(tasks: list[Search], bounds: Bounds, jobs: int, until_s: float) -> Iterator[Found]:
    """Searches on that many processes, in the order in which they end; none is begun too late."""
    context = multiprocessing.get_context("spawn")
    queue = iter(tasks)
    under_way: set[Future[Found]] = set()
    with ProcessPoolExecutor(jobs, context, begin_worker) as pool:
        while True:
            while len(under_way) < jobs and time.monotonic() < until_s:
                task = next(queue, None)
                if task is None:
                    break
                under_way.add(pool.submit(search, task, bounds))
            if not under_way:
                return
            over, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in over:
                yield future.result()


def main(words: list[str] | None = None) -> int:
    """Search what is missing, print the table; status 1 when a bug is not caught."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.catching", description=__doc__
    )
    parser.add_argument("--starts", type=number(1, 99), default=STARTS, metavar="N")
    parser.add_argument(
        "--bugs", nargs="+", choices=list(MUTANTS), default=list(MUTANTS), metavar="NAME"
    )
    parser.add_argument("--seeds", type=number(1), default=SEEDS, metavar="N")
    parser.add_argument("--cpu", type=number(1), default=CPU_S, metavar="SECONDS")
    parser.add_argument("--jobs", type=number(1), default=os.cpu_count() or 1, metavar="N")
    parser.add_argument(
        "--for",
        dest="for_s",
        type=duration_s,
        default=duration_s("12h"),
        metavar="TIME",
        help="begin no other search after so long",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("build/catching.jsonl"), metavar="FILE"
    )
    arguments = parser.parse_args(words)
    bounds = Bounds(arguments.seeds, arguments.cpu)
    results = Results(arguments.results, arguments.starts)
    until_s = time.monotonic() + arguments.for_s
    tasks = results.missing(arguments.bugs)
    for found in run(tasks, bounds, arguments.jobs, until_s):
        results.add(found)
        what = f"by {found.by}" if found.by else "not found"
        print(
            f"{found.bug} from {found.start}: {what}, {found.seeds} seeds, {found.cpu_s:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    lines = list(table(results.found, arguments.bugs, results.starts, bounds))
    print("\n".join(lines))
    return 1 if any("not caught" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
