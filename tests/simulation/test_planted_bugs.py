"""Every rule that is turned off on purpose turns the swarm red."""

from __future__ import annotations

import pytest

from quorate.sim.mutants.mutant import Patch
from quorate.sim.mutants.registry import MUTANTS
from quorate.sim.runner import run_seed

PLANTED_BUGS_MIN = 80


def seeds_to_try(name: str) -> list[int]:
    """Those that caught it when it was last looked for, then all others that it is given."""
    bug = MUTANTS[name]
    return [*bug.seeds, *(seed for seed in range(1, bug.within + 1) if seed not in bug.seeds)]


@pytest.mark.parametrize("name", list(MUTANTS))
def test_the_swarm_catches(name: str) -> None:
    for seed in seeds_to_try(name):
        # A second run would tell the steps of the failure, which nothing here reads.
        if run_seed(seed, bug=name, lines=0).failure is not None:
            return
    pytest.fail(f"{MUTANTS[name].what}: not caught within {MUTANTS[name].within} seeds")


@pytest.mark.parametrize("name", [name for name, bug in MUTANTS.items() if bug.world])
def test_its_own_world_is_clean_without_it(name: str) -> None:
    for seed in MUTANTS[name].seeds:
        result = run_seed(seed, world_of=name)
        assert result.failure is None, result.report()


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= PLANTED_BUGS_MIN


def test_a_bug_replaces_something_that_exists() -> None:
    with pytest.raises(AttributeError, match="Patch has no fail to replace"):
        Patch(Patch, "fail", None)
