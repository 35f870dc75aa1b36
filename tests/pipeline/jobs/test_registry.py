from __future__ import annotations

import argparse
from importlib import import_module

import pytest

from quorate.pipeline.jobs.registry import JOBS, JobOption, number


@pytest.mark.parametrize("name", JOBS)
def test_what_the_registry_says_of_a_job_is_what_its_module_has(name: str) -> None:
    job = JOBS[name]
    module = import_module(job.module)
    assert job.name == name
    if job.tables:
        assert tuple(module.SCHEMAS) == job.tables
        assert callable(module.tables)
    else:
        assert callable(module.run)


@pytest.mark.parametrize("name", JOBS)
def test_summaries_fit_on_a_line(name: str) -> None:
    assert len(JOBS[name].summary) < 90
    assert JOBS[name].summary[0].islower()


def test_an_option_is_known_by_its_flag() -> None:
    assert JobOption("--flap-count", "how many", number(), "N").name == "flap_count"


def test_numbers_have_bounds() -> None:
    assert number(1, 5)("5") == 5
    with pytest.raises(argparse.ArgumentTypeError, match="6: it must be 1 to 5"):
        number(1, 5)("6")
