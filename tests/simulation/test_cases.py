"""Kept cases: what failed once does not fail again, and the effect of a mutant is seen.

`quorate simulate --shrink FOLDER` makes such files of seeds that fail.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quorate.sim.cases.case import Case, format_case, parse_case
from quorate.sim.runner import run_case

CASES = sorted((Path(__file__).parent / "cases").glob("*.case"))


def read(path: Path) -> Case:
    return parse_case(path.read_text(encoding="utf-8"))


@pytest.fixture(params=CASES, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


def test_a_case_that_was_kept_is_clean(path: Path) -> None:
    result = run_case(replace(read(path), bug=None), file=path.name)
    assert result.failure is None, result.report()


def test_a_case_of_a_planted_bug_fails_as_it_says(path: Path) -> None:
    case = read(path)
    if case.bug is None:
        return
    failure = run_case(case, lines=0).failure
    assert failure is not None
    assert failure.name == case.about.partition(":")[0]


def test_a_case_is_kept_as_it_would_be_written(path: Path) -> None:
    assert format_case(read(path)) == path.read_text(encoding="utf-8")
