from __future__ import annotations

from dataclasses import replace

from quorate.sim.engine.network import NetworkOptions
from quorate.sim.sim_options import DiskOptions, WorldOptions
from quorate.sim.time_bounds import election_bound_us, failover_bound_us

CLEAN = WorldOptions(network=NetworkOptions(delay_us=1000))


def test_a_clean_world_is_given_some_election_timeouts_beyond_what_misses_a_leader() -> None:
    missed_us = 2.5 * CLEAN.timeouts.fetch_timeout_ms * 1000
    assert missed_us < election_bound_us(CLEAN) < missed_us + 7_000_000


def test_what_gets_lost_is_tried_more_often() -> None:
    lossy = replace(CLEAN, network=NetworkOptions(delay_us=1000, loss_rate=0.1))
    worse = replace(CLEAN, network=NetworkOptions(delay_us=1000, loss_rate=0.2))
    assert election_bound_us(CLEAN) < election_bound_us(lossy) < election_bound_us(worse)


def test_what_is_late_counts_where_a_round_cannot_wait_for_it() -> None:
    slow = replace(CLEAN, disks=DiskOptions(slow_fsync_rate=0.2, slow_fsync_us=100_000))
    slower = replace(CLEAN, disks=DiskOptions(slow_fsync_rate=0.2, slow_fsync_us=1_000_000))
    assert election_bound_us(slow) < election_bound_us(CLEAN) + 1_000_000
    assert election_bound_us(slower) > 2 * election_bound_us(slow)


def test_one_election_follows_on_a_leader_that_vanished() -> None:
    timeouts_us = 1000 * (CLEAN.timeouts.fetch_timeout_ms + CLEAN.timeouts.election_timeout_ms)
    assert timeouts_us < failover_bound_us(CLEAN) < 1.1 * timeouts_us


def test_where_all_are_behind_each_waits_before_that_election() -> None:
    options = WorldOptions()
    waited_us = failover_bound_us(options, are_all_behind=True)
    before_us = failover_bound_us(options)
    assert waited_us - before_us == 2 * options.timeouts.election_timeout_ms * 1000
