"""Seeds under drawn faults: nothing is violated, and everything heals. `make sim` runs more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.sim.simulation import run_seeds

if TYPE_CHECKING:
    import pytest


def test_no_seed_violates_an_invariant(request: pytest.FixtureRequest) -> None:
    last = request.config.getoption("--swarm-seeds")
    failures = [
        result.report() for result in run_seeds(1, last, jobs=2) if result.failure is not None
    ]
    assert not failures, "\n\n".join(failures)


def test_the_swarm_does_what_it_is_for() -> None:
    """Seeds that commit nothing or elect nobody would prove nothing."""
    results = list(run_seeds(1, 12, jobs=2))
    assert sum(result.acknowledged for result in results) > 1000
    assert sum(result.epochs for result in results) > 50
