"""Upper bounds on how long an operation may take, from timeouts, network and disks.

A bound holds with faults and without. It grows with the loss and delay in the cluster: it allows as
many rounds as are needed for one to succeed with practical certainty.
"""

from __future__ import annotations

from math import ceil, log
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from quorate.sim.sim_options import WorldOptions

MILLION: Final = 1_000_000
# An election exceeds its bound by chance once in this many.
ONE_IN: Final = 1e9
# Time that contenders may cost each other without loss or delay, in election timeouts.
UNDISTURBED_TIMEOUTS: Final = 4
# The upper limit of a randomized election timeout, in election timeouts.
ELECTION_DRAWS: Final = 2
# Messages and disk calls that must all be in time for a round to be won.
MESSAGES: Final = 6
CALLS: Final = 4
# The fraction of rounds without loss or delay that fail nevertheless.
FAILING: Final = 0.2
# The duration of a failed round in election timeouts: one for the votes, one for the backoff.
ROUND_TIMEOUTS: Final = 2


def clock_factor(options: WorldOptions) -> float:
    """The factor by which the slowest clock may stretch a timeout."""
    return 1 + 1.2 * options.processes.drift_ppm / MILLION


def election_bound_us(options: WorldOptions) -> int:
    """The time from a healthy and connected majority until one of its voters must lead.

    First the voters time out on the old leader, or it notices that its disk has failed or that it
    has lost its majority. A voter whose state machine lags waits once. Then come the election
    rounds.
    """
    timeouts = options.timeouts
    election_us, fetch_us = timeouts.election_timeout_ms * 1000, timeouts.fetch_timeout_ms * 1000
    missed_us = fetch_us + timeouts.check_quorum_timeout_ms * 1000 + 2 * election_us
    round_us = ROUND_TIMEOUTS * election_us + slowest_trip_us(options) + slowest_call_us(options)
    rounds_us = UNDISTURBED_TIMEOUTS * election_us + _rounds(options) * round_us
    calls_us = CALLS * slowest_call_us(options)
    return int((missed_us + rounds_us + calls_us) * clock_factor(options))


def failover_bound_us(options: WorldOptions, *, are_all_behind: bool = False) -> int:
    """The time from the loss of a leader until it has a successor, without other faults.

    All voters detect the loss after a fetch timeout, and one election follows. If all state
    machines lag, each voter first waits for a random election timeout.
    """
    election_ms = options.timeouts.election_timeout_ms
    wait_ms = ELECTION_DRAWS * election_ms if are_all_behind else 0
    timeouts_us = 1000 * (options.timeouts.fetch_timeout_ms + wait_ms + election_ms)
    network = options.network
    work_us = CALLS * options.disks.fsync_us + MESSAGES * network.delay_us
    return int(timeouts_us * clock_factor(options)) + work_us


def slowest_trip_us(options: WorldOptions) -> int:
    """The maximum round-trip time, with both messages late."""
    network = options.network
    late_us = network.slow_us if network.slow_rate else 0
    return 2 * (network.delay_us + network.jitter_us + late_us)


def slowest_call_us(options: WorldOptions) -> int:
    """The maximum duration of a disk call, unless the disk stalls."""
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
