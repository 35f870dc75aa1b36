from __future__ import annotations

from random import Random

from quorate.server.config import read_config
from quorate.sim.engine.node_config import settings_of
from quorate.sim.faults.fault_mix import draw_options
from quorate.sim.faults.option_mix import (
    ROUND_TRIPS_OF_ELECTION,
    ROUND_TRIPS_OF_FETCH,
    draw_mix,
    round_trip_ms,
)
from quorate.sim.sim_options import WorldOptions

SEEDS = range(1, 400)
REST = {
    "node.id": "1",
    "metadata.log.dir": "/data",
    "controller.quorum.bootstrap.servers": "one:9094",
    "advertised.listeners": "GRPC://one:9094",
}


def with_settings(seed: int) -> bool:
    """True if this seed has settings of its own."""
    return draw_mix(seed).timeouts.retry_backoff_ms != WorldOptions().timeouts.retry_backoff_ms


def test_whatever_settings_are_drawn_a_controller_starts_with_them() -> None:
    for seed in SEEDS:
        read_config({**REST, **settings_of(draw_mix(seed))}, {})


def test_timeouts_fit_the_way_between_the_controllers() -> None:
    for seed in filter(with_settings, SEEDS):
        options = draw_mix(seed)
        trip_ms = round_trip_ms(options.network)
        assert options.timeouts.election_timeout_ms >= ROUND_TRIPS_OF_ELECTION * trip_ms
        assert options.timeouts.fetch_timeout_ms >= ROUND_TRIPS_OF_FETCH * trip_ms


def test_settings_are_long_and_short() -> None:
    drawn = [draw_mix(seed) for seed in filter(with_settings, SEEDS)]
    elections = [options.timeouts.election_timeout_ms for options in drawn]
    assert min(elections) < 150
    assert max(elections) > 5000
    assert any(round_trip_ms(options.network) > 300 for options in drawn)


def test_of_eight_worlds_at_least_one_is_that_of_the_mix_without_them() -> None:
    old = [seed for seed in SEEDS if draw_mix(seed) == draw_options(Random(seed * 2 + 1))]
    assert len(old) > len(SEEDS) / 8


def test_each_idea_is_drawn_in_some_worlds() -> None:
    drawn = [draw_mix(seed) for seed in SEEDS]
    assert {0.0, 0.05, 0.3, 1.0} == {options.log.aimed_snapshot_rate for options in drawn}
    bold = [options for options in drawn if options.membership.bold_voters_every_ms]
    assert 0 < len(bold) < len(drawn) / 4
    dense = [o for o in drawn if o.reach.late_every_ms and o.reach.partition_every_ms]
    assert any(options.clients.read_every_ms not in (100, 300, 1000) for options in dense)
