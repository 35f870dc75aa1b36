from __future__ import annotations

import itertools
from typing import get_args

import pytest

from quorate.sim.log_generator.options import WeekOptions
from quorate.sim.log_generator.scenario import (
    Crash,
    Incident,
    Restart,
    broker_ids,
    controllers_of,
    plan,
)


@pytest.mark.parametrize("days", [1, 7, 30])
@pytest.mark.parametrize("brokers", [3, 100])
def test_everything_happens_in_every_week_however_small(days: int, brokers: int) -> None:
    options = WeekOptions(seed=7, days=days, brokers=brokers)
    planned = plan(options)
    assert {type(p.incident) for p in planned} == set(get_args(Incident))
    assert [p.at_ms for p in planned] == sorted(p.at_ms for p in planned)
    assert planned[0].at_ms > 0
    assert planned[-1].at_ms < options.duration_ms


def test_another_seed_is_another_week() -> None:
    assert plan(WeekOptions(seed=1)) == plan(WeekOptions(seed=1))
    assert plan(WeekOptions(seed=1)) != plan(WeekOptions(seed=2))


def test_every_broker_is_restarted_twice_one_after_the_other() -> None:
    restarts = [
        (planned.at_ms, planned.incident)
        for planned in plan(WeekOptions(seed=1, brokers=10))
        if isinstance(planned.incident, Restart)
    ]
    ids = list(broker_ids(WeekOptions(seed=1, brokers=10)))
    assert [restart.broker for _, restart in restarts] == [*ids, *ids]
    for (at_ms, restart), (next_ms, _) in itertools.pairwise(restarts):
        assert at_ms + restart.down_ms < next_ms


def test_the_one_that_flaps_dies_again_soon_after_it_is_back() -> None:
    crashes: dict[int, list[int]] = {}
    for planned in plan(WeekOptions(seed=1)):
        if isinstance(planned.incident, Crash) and len(planned.incident.brokers) == 1:
            crashes.setdefault(planned.incident.brokers[0], []).append(planned.at_ms)
    flapping = max(crashes.values(), key=len)
    assert len(flapping) >= 5


@pytest.mark.parametrize("voters", [1, 2, 3, 5])
def test_who_is_written_votes_at_the_end(voters: int) -> None:
    who = controllers_of(WeekOptions(seed=1, voters=voters))
    assert len(who.written) == len(set(who.written)) == voters
    assert set(who.written) <= set(who.last)
    assert who.written[0] in who.first
    assert who.written[0] != who.refilled
    assert set(who.last) == {*who.first, who.newcomer} - {who.leaver}
