"""Upper bounds on how long an operation may take, from timeouts, network and disks.

A bound holds with faults or without. It grows with the loss and delay in that cluster: so many
rounds that one of them succeeds with practical certainty.
"""

from __future__ import annotations

from math import ceil, log
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quorate.sim.sim_options import WorldOptions

MILLION: Final = 1_000_000
# A bound is broken by chance in one of so many elections.
ONE_IN: Final = 1e9
# Rounds that rivals may cost each other where nothing is lost or late, in election timeouts.
UNDISTURBED_TIMEOUTS: Final = 4
# Up to how many times its length an election timeout is drawn.
ELECTION_DRAWS: Final = 2
# Messages and calls to the disk that all have to be in time for a round to be won.
MESSAGES: Final = 6
CALLS: Final = 4
# Of a round that disturbs nothing, how many fail all the same.
FAILING: Final = 0.2
# What a round that is lost takes, in election timeouts: one for the votes, as long a rest.
ROUND_TIMEOUTS: Final = 2


def clock_factor(options: WorldOptions) -> float:
    """By how much the slowest clock may be behind."""
    return 1 + 1.2 * options.processes.drift_ppm / MILLION


def election_bound_us(options: WorldOptions) -> int:
    """From the moment at which a majority is well and connected until one of it must lead.

    The old leader is missed first, or has to notice that its disk or its majority is gone; a voter
    whose state machine is behind waits once; then come as many rounds as it takes.
    """
    timeouts = options.timeouts
    election_us, fetch_us = timeouts.election_timeout_ms * 1000, timeouts.fetch_timeout_ms * 1000
    missed_us = fetch_us + timeouts.check_quorum_timeout_ms * 1000 + 2 * election_us
    round_us = ROUND_TIMEOUTS * election_us + slowest_trip_us(options) + slowest_call_us(options)
    rounds_us = UNDISTURBED_TIMEOUTS * election_us + _rounds(options) * round_us
    calls_us = CALLS * slowest_call_us(options)
    return int((missed_us + rounds_us + calls_us) * clock_factor(options))


def failover_bound_us(options: WorldOptions, *, are_all_behind: bool = False) -> int:
    """From the moment at which a leader vanishes until it has a successor, all else being well.

    All miss it when a fetch timeout is over, and one election follows. Where all state machines are
    behind, each voter waits for a drawn election timeout before.
    """
    election_ms = options.timeouts.election_timeout_ms
    wait_ms = ELECTION_DRAWS * election_ms if are_all_behind else 0
    timeouts_us = 1000 * (options.timeouts.fetch_timeout_ms + wait_ms + election_ms)
    network = options.network
    work_us = CALLS * options.disks.fsync_us + MESSAGES * network.delay_us
    return int(timeouts_us * clock_factor(options)) + work_us


def slowest_trip_us(options: WorldOptions) -> int:
    """There and back, both messages late."""
    network = options.network
    late_us = network.slow_us if network.slow_rate else 0
    return 2 * (network.delay_us + network.jitter_us + late_us)


def slowest_call_us(options: WorldOptions) -> int:
    """A call to a disk that does not hang."""
    disks = options.disks
    return disks.fsync_us + (disks.slow_fsync_us if disks.slow_fsync_rate else 0)


def _rounds(options: WorldOptions) -> int:
    """The number of rounds that loss or delay may cost; 0 without either."""
    network, disks = options.network, options.disks
    in_time_us = options.timeouts.election_timeout_ms * 500
    lost = network.loss_rate + options.peers.spoilt_answer_rate
    if network.slow_us > in_time_us:
        lost += network.slow_rate
    late = disks.slow_fsync_rate if disks.slow_fsync_us > in_time_us else 0.0
    if not lost and not late:
        return 0
    won = (1 - FAILING) * (1 - lost) ** MESSAGES * (1 - late) ** CALLS
    return ceil(-log(ONE_IN) / log(1 - won))
