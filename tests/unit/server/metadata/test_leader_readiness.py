"""The readiness of a controller to lead, as the core receives it."""

from __future__ import annotations

import pytest

from quorate.raft.api import StateMachineProgress
from quorate.server.metadata.leader_readiness import READY_LAG_MAX, LeaderReadiness


@pytest.mark.rule("unready_voter_waits")
def test_the_core_hears_of_each_change_once() -> None:
    told: list[StateMachineProgress] = []
    fitness = LeaderReadiness(told.append)
    for lag in (0, READY_LAG_MAX, READY_LAG_MAX + 1, READY_LAG_MAX + 2, 0):
        fitness.set_lag(lag)
    assert told == [StateMachineProgress(ready=False), StateMachineProgress(ready=True)]


def test_who_lacks_space_is_not_fit_however_far_its_image_is() -> None:
    told: list[StateMachineProgress] = []
    fitness = LeaderReadiness(told.append)
    fitness.set_space(is_enough=False)
    fitness.set_caught_up(has_caught_up=False)
    fitness.set_space(is_enough=True)
    assert told == [StateMachineProgress(ready=False)]
    fitness.set_caught_up(has_caught_up=True)
    assert told[1:] == [StateMachineProgress(ready=True)]
