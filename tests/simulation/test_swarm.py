"""Seeds under drawn faults: nothing is violated, and everything heals. `make sim` runs more."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

import pytest

from quorate.sim.parallel_runner import COLLECTED_AFTER, run_seeds
from quorate.sim.runner import run_seed

if TYPE_CHECKING:
    from quorate.sim.runner import SeedResult


# Fewer seeds may happen to commit little.
SEEDS_MIN: Final = 12


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> list[SeedResult]:
    """The results of seed 1 and the following ones."""
    last = max(request.config.getoption("--swarm-seeds"), SEEDS_MIN)
    return list(run_seeds(range(1, last + 1), jobs=2))


def test_no_seed_violates_an_invariant(results: list[SeedResult]) -> None:
    failures = [result.report() for result in results if result.failure is not None]
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(4354067, id="moved-while-the-leader-appended"),
        pytest.param(4354097, id="promises-passed-round-by-six"),
        pytest.param(77000357, id="promises-passed-round-by-seven"),
        pytest.param(700032, id="error-of-the-harness"),
    ],
)
def test_a_seed_that_was_reported_to_fail_does_not(seed: int) -> None:
    result = run_seed(seed)
    assert result.failure is None, result.report()


def test_the_swarm_does_what_it_is_for(results: list[SeedResult]) -> None:
    """Seeds without a commit or a leader would prove nothing."""
    first = results[:SEEDS_MIN]
    assert sum(result.acknowledged for result in first) > 1000
    assert sum(result.epochs for result in first) > 50


def test_one_job_collects_as_rarely_as_a_worker_and_only_while_it_runs() -> None:
    before = gc.get_threshold()
    seeds = run_seeds([10])
    next(seeds)
    assert gc.get_threshold()[0] == COLLECTED_AFTER
    assert next(seeds, None) is None
    assert gc.get_threshold() == before
