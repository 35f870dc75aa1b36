"""Seeds under drawn faults: nothing is violated, and everything heals. `make sim` runs more."""

from __future__ import annotations

import pytest

from quorate.sim.simulation import run_seed
from quorate.sim.swarm import run_seeds


def test_no_seed_violates_an_invariant(request: pytest.FixtureRequest) -> None:
    last = request.config.getoption("--swarm-seeds")
    failures = [
        result.report()
        for result in run_seeds(range(1, last + 1), jobs=2)
        if result.failure is not None
    ]
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


def test_the_swarm_does_what_it_is_for() -> None:
    """Seeds that commit nothing or elect nobody would prove nothing."""
    results = list(run_seeds(range(1, 13), jobs=2))
    assert sum(result.acknowledged for result in results) > 1000
    assert sum(result.epochs for result in results) > 50
