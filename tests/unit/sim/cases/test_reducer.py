"""Cases that fail are made smaller, and fail alike."""

from __future__ import annotations

import pytest

from quorate.sim.action_runner import TimedAction
from quorate.sim.actions.client_requests import WriteRecords
from quorate.sim.actions.processes import Kill
from quorate.sim.cases.case import Case, case_from_actions
from quorate.sim.cases.reducer import shrink_case
from quorate.sim.cluster import Cluster
from quorate.sim.runner import drawn_case, play, run_case
from quorate.sim.sim_options import ProcessOptions, WorldOptions

BUG = "answers-before-commit"
SECOND_US = 1_000_000


def never() -> bool:
    return False


def test_a_seed_becomes_a_case_of_few_deeds_that_fails_alike() -> None:
    drawn = drawn_case(1, bug=BUG)
    failure = run_case(drawn, lines=0).failure
    assert failure is not None
    case = shrink_case(drawn, never)
    assert case is not None
    assert case.deeds is not None
    assert len(case.deeds) <= 3
    assert case.options.voters <= drawn.options.voters
    again = run_case(case, lines=0).failure
    assert again is not None
    assert again.kind == failure.kind
    assert case.about == str(again)
    assert run_case(Case(case.seed, case.options, None, case.deeds), lines=0).failure is None


@pytest.mark.parametrize("seed", [3, 16, 19])
def test_what_a_seed_drew_is_done_again_where_it_is_written_down(seed: int) -> None:
    """Drawn actions leave all other random streams as they are."""
    drawn = drawn_case(seed)
    world = Cluster(seed, drawn.options, keep=0)
    ran = play(drawn, world)
    case = case_from_actions(drawn, ran.done, "")
    other = Cluster(seed, case.options, keep=0)
    assert play(case, other).done == ran.done
    # Of two writes in one instant either may come first.
    assert other.oracle.acknowledged.keys() == world.oracle.acknowledged.keys()
    assert other.oracle.ends == world.oracle.ends


def test_what_was_found_when_time_is_up_has_to_do() -> None:
    looks = iter([False, False, True])
    case = shrink_case(drawn_case(1, bug=BUG), lambda: next(looks))
    assert case is not None
    assert run_case(case, lines=0).failure is not None


def test_of_a_clean_seed_there_is_no_case() -> None:
    assert shrink_case(Case(1, WorldOptions(duration_ms=1), deeds=()), never) is None


def test_a_case_becomes_smaller_still() -> None:
    deeds = (
        TimedAction(5 * SECOND_US, Kill(who=3, down_us=1)),
        TimedAction(20 * SECOND_US, WriteRecords(count=3)),
        TimedAction(21 * SECOND_US, WriteRecords(count=3)),
    )
    options = WorldOptions(voters=5, duration_ms=22_000, processes=ProcessOptions(drift_ppm=1000))
    case = shrink_case(Case(1, options, BUG, deeds), never)
    assert case is not None
    assert case.deeds is not None
    assert len(case.deeds) <= 1
    assert case.options.processes.drift_ppm == 0
    assert case.options.voters < 5
    assert case.options.duration_ms < 22_000
