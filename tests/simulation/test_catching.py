"""The tool that measures how soon drawn seeds catch mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.catching import Bounds, Found, Results, Search, search, table

if TYPE_CHECKING:
    from pathlib import Path

BOUNDS = Bounds(seeds=300, cpu_s=200)
BUGS = ["one", "another"]


def found(bug: str, start: int, seeds: int, cpu_s: float, *, by: str | None = "Oracle") -> Found:
    return Found(bug, start, seeds, cpu_s, by)


def test_a_search_ends_with_the_seed_that_the_bug_fails() -> None:
    result = search(Search("minority-commits", 1), BOUNDS)
    assert result.by == "AcknowledgedSurvives"
    assert result.seeds < BOUNDS.seeds
    assert result.cpu_s > 0


def test_a_search_is_given_up_when_both_bounds_are_passed() -> None:
    result = search(Search("snapshot-with-a-hole", 1), Bounds(seeds=1, cpu_s=0))
    assert (result.seeds, result.by) == (1, None)


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "build" / "results.jsonl"
    results = Results(path, 2)
    tasks = results.missing(BUGS)
    assert tasks == [Search(bug, start) for start in results.starts for bug in BUGS]
    done = Found(tasks[0].bug, tasks[0].start, 3, 1.5, "Oracle", (7,))
    results.add(done)
    again = Results(path, 2)
    assert again.starts == results.starts
    assert again.found == [done]
    assert again.missing(BUGS) == tasks[1:]


def test_more_starts_are_drawn_for_what_was_measured_from_fewer(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    few = Results(path, 1)
    few.add(found("one", few.starts[0], 3, 1.5))
    more = Results(path, 3)
    assert more.starts[0] == few.starts[0]
    assert len(set(more.starts)) == 3
    assert Results(path, 3).starts == more.starts
    assert len(more.missing(["one"])) == 2


def rows(*searches: Found) -> list[str]:
    starts = sorted({one.start for one in searches})
    return [line for line in table(list(searches), BUGS, starts, BOUNDS) if line.startswith("| `")]


def test_a_bug_is_caught_when_the_median_is_within_a_bound() -> None:
    searches = [found("one", 1, 5, 2.0), found("one", 2, 9, 4.0)]
    (row,) = rows(*searches, found("one", 3, 400, 300.0, by=None))
    assert row == "| `one` | 2 of 3 | 9 (5, 9, >400) | 4 | Oracle |"


def test_a_bug_that_most_starts_miss_is_not_caught() -> None:
    searches = [found("one", 1, 400, 300.0, by=None), found("one", 2, 9, 4.0)]
    (row,) = rows(*searches, found("one", 3, 400, 300.0, by=None))
    assert row == "| `one` | 1 of 3 | **not caught** (>400, 9, >400) | - | Oracle |"


def test_seeds_that_fail_without_a_bug_are_told() -> None:
    lines = list(table([Found("one", 1, 5, 2.0, "Oracle", (3,))], BUGS, [1], BOUNDS))
    assert lines[-2:] == [
        "1 of 1 bugs are caught, from 1 starts: [1]",
        "these seeds fail without a bug: 3",
    ]
