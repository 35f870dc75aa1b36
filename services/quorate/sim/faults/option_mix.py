"""Draws all options of a seed: its faults and, in some clusters, other settings.

The options that `sim/faults/fault_mix.py` does not draw are drawn here, each group from its own
random stream. So a new group leaves the clusters without it unchanged.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.server.timeouts import (
    ELECTION_TIMEOUT_MIN_MS,
    FETCH_TIMEOUT_MIN_MS,
    REQUEST_TIMEOUT_MIN_MS,
    SESSION_SHARE,
)
from quorate.sim.cases.field_codec import flat, with_fields
from quorate.sim.faults.fault_mix import draw_options
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from quorate.sim.engine.network import NetworkOptions
    from quorate.sim.sim_options import WorldOptions

MIB: Final = 1024 * 1024
# Timeouts that docs/operations.md requires between distant regions, in round trips.
ROUND_TRIPS_OF_ELECTION: Final = 10
ROUND_TRIPS_OF_FETCH: Final = 20
SESSION_MAX_MS: Final = 20_000
# Options with the duration of a fault; the others are the intervals between faults.
_LENGTHS: Final = ("duration_ms", "partition_ms", "restart_ms", "pause_ms", "hang_ms", "late_ms")
# The number of brokers up to which any fetch size is large enough for what they write.
_FEW_BROKERS: Final = 40
# The sum of the timeouts in clusters whose durations are drawn in milliseconds.
_USUAL_MS: Final = 2500
_SLOWEST_PACE: Final = 10.0
_FASTEST_PACE: Final = 0.25


def draw_mix(seed: int) -> WorldOptions:
    """Draw the complete options of a cluster."""
    # The fault mix has its own generator, so that a new option leaves other events unchanged.
    options = draw_options(random.Random(seed * 2 + 1))
    options = _with_brokers(options, RandomSource(seed, "brokers"))
    options = _with_many_brokers(options, RandomSource(seed, "many brokers"))
    options = _with_bad_peers(options, RandomSource(seed, "bad peers"))
    options = _with_late_messages(options, RandomSource(seed, "late messages"))
    options = _with_late_reads(options, RandomSource(seed, "late reads"))
    options = _with_aimed_snapshots(options, RandomSource(seed, "aimed snapshots"))
    options = _with_bold_changes(options, RandomSource(seed, "bold changes"))
    options = _with_spoiled_files(options, RandomSource(seed, "files"))
    options = _with_other_settings(options, RandomSource(seed, "settings"))
    options = _with_wide_fetches(options)
    return _with_queues(options, RandomSource(seed, "queues"))


def _with_brokers(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Brokers that are started and stopped, few or many, and their topics."""
    if not random_source.chance(0.15):
        return options
    brokers = random_source.log_uniform(2, _FEW_BROKERS)
    # Some hundred partitions in total: brokers that stop together cause many slices of work.
    topics = random_source.between(0, 6)
    return with_fields(
        options,
        brokers=brokers,
        topics=topics,
        partitions=random_source.log_uniform(1, 600 // max(1, topics)),
        session_timeout_ms=random_source.choice((1000, 3000, 9000)),
        silence_every_ms=random_source.between(2000, 12_000),
        topics_every_ms=random_source.between(500, 4000),
        oddities_every_ms=random_source.choice((0, random_source.between(50, 1000))),
    )


def _with_many_brokers(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """More brokers that fail together than one batch can fence, with many partitions each.

    This is rare, because such a cluster takes as long as ten others.
    """
    if not random_source.chance(0.02):
        return options
    topics = random_source.between(1, 4)
    return with_fields(
        options,
        brokers=random_source.between(60, 160),
        topics=topics,
        partitions=random_source.between(500, 1500) // topics,
        session_timeout_ms=random_source.choice((3000, 9000)),
        silence_every_ms=random_source.between(6000, 15_000),
        topics_every_ms=random_source.between(1000, 4000),
    )


def _with_wide_fetches(options: WorldOptions) -> WorldOptions:
    """Fetch sizes with which followers keep up with the writes of many brokers."""
    if options.fleet.brokers <= _FEW_BROKERS:
        return options
    log = options.log
    return with_fields(
        options,
        fetch_max_bytes=max(log.fetch_max_bytes, MIB),
        chunk_bytes=max(log.chunk_bytes, MIB),
    )


def _with_bad_peers(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Peers and clients that are broken, of another cluster, or malicious."""
    if not random_source.chance(0.25):
        return options
    return with_fields(
        options,
        in_vain_every_ms=random_source.choice((0, random_source.log_uniform(100, 2000))),
        spoilt_answer_rate=random_source.choice((0.0, 0.005, 0.05)),
    )


def _with_late_messages(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Messages that arrive when they are obsolete."""
    if not random_source.chance(0.2):
        return options
    return with_fields(
        options,
        late_every_ms=random_source.log_uniform(300, 3000),
        late_ms=random_source.between(1000, 6000),
    )


def _with_late_reads(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Late messages, partitions and reads in one cluster: independent draws rarely combine them."""
    if not random_source.chance(0.08):
        return options
    return with_fields(
        options,
        late_every_ms=random_source.between(200, 600),
        late_ms=random_source.between(1000, 6000),
        partition_every_ms=random_source.between(2000, 4000),
        read_every_ms=random_source.between(50, 150),
    )


def _with_aimed_snapshots(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Snapshots that end at an epoch's start, or next to a voters record."""
    if not random_source.chance(0.2):
        return options
    return with_fields(options, aimed_snapshot_rate=random_source.choice((0.05, 0.3, 1.0)))


def _with_bold_changes(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Voter changes requested without force, whether or not most of the voters run."""
    if not random_source.chance(0.15):
        return options
    return with_fields(options, bold_voters_every_ms=random_source.between(600, 4000))


def _with_spoiled_files(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Corrupted small files, restored stale files, failing calls."""
    if not random_source.chance(0.15):
        return options
    return with_fields(
        options,
        small_rot_every_ms=_now_and_then(random_source, 1000, 6000, 0.5),
        put_back_every_ms=_now_and_then(random_source, 1000, 6000, 0.5),
        unreadable_every_ms=_now_and_then(random_source, 2000, 10_000, 0.5),
        short_every_ms=_now_and_then(random_source, 2000, 10_000, 0.5),
    )


def _with_queues(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Decisions that take time and wait for commits, so that requests of several clients queue."""
    if not random_source.chance(0.1):
        return options
    if not options.fleet.brokers:
        every_ms = 2 * options.timeouts.session_timeout_ms
        options = with_fields(
            options, brokers=random_source.between(2, 12), silence_every_ms=every_ms
        )
    clients, timeouts = options.clients, options.timeouts
    # A broker sends four heartbeats per session timeout. The queues must run empty at times.
    asked_per_ms = 1 / clients.write_every_ms + (
        4 * options.fleet.brokers / timeouts.session_timeout_ms
    )
    commit_ms = 1 + round_trip_ms(options.network) + 2 * options.disks.fsync_us // 1000
    written = clients.records_max * (commit_ms + options.log.linger_ms) / clients.write_every_ms
    return with_fields(
        options,
        decision_us=min(10_000, int(random_source.between(50, 500) / asked_per_ms)),
        ahead_max=1 + int(written * random_source.between(2, 8)),
        client_addresses=random_source.between(2, 6),
    )


def _now_and_then(random_source: RandomSource, low_ms: int, high_ms: int, share: float) -> int:
    """A mean interval with probability `share`, else 0 for never."""
    every_ms = random_source.between(low_ms, high_ms)
    return every_ms if random_source.chance(share) else 0


def _with_other_settings(options: WorldOptions, random_source: RandomSource) -> WorldOptions:
    """Random valid settings, long and short, within what network and disks require.

    All intervals scale with the timeouts, so that as much happens between two elections as in
    other clusters.
    """
    if not random_source.chance(0.4):
        return options
    network = (
        _far_apart(options.network, random_source)
        if random_source.chance(0.25)
        else options.network
    )
    trip_ms = round_trip_ms(network)
    # A vote request and its response each wait for a disk.
    disk_ms = 2 * options.disks.fsync_us // 1000
    election_ms = random_source.log_uniform(
        max(ELECTION_TIMEOUT_MIN_MS, ROUND_TRIPS_OF_ELECTION * trip_ms, 2 * disk_ms), 10_000
    )
    fetch_ms = random_source.log_uniform(
        max(FETCH_TIMEOUT_MIN_MS, ROUND_TRIPS_OF_FETCH * trip_ms, 4 * disk_ms), 20_000
    )
    shorter_ms = min(election_ms, fetch_ms)
    linger_ms = random_source.choice(
        (0, random_source.log_uniform(1, min(fetch_ms // 2, SESSION_MAX_MS // SESSION_SHARE)))
    )
    settings = with_fields(
        options,
        network=network,
        election_timeout_ms=election_ms,
        fetch_timeout_ms=fetch_ms,
        request_timeout_ms=random_source.log_uniform(
            max(REQUEST_TIMEOUT_MIN_MS, ROUND_TRIPS_OF_FETCH * trip_ms), 20_000
        ),
        election_backoff_max_ms=random_source.log_uniform(1, 10_000),
        retry_backoff_ms=random_source.log_uniform(1, shorter_ms // 4),
        linger_ms=linger_ms,
        session_timeout_ms=random_source.log_uniform(
            max(500, 4 * trip_ms, SESSION_SHARE * linger_ms), SESSION_MAX_MS
        ),
        fetch_max_bytes=random_source.log_uniform(1, 8 * MIB),
        chunk_bytes=random_source.log_uniform(64, 8 * MIB),
        segment_bytes=random_source.log_uniform(1024, MIB),
        snapshot_interval_ms=random_source.choice((0, 0, random_source.log_uniform(500, 30_000))),
        retention_bytes=random_source.choice((-1, 0, random_source.log_uniform(500, MIB))),
        retention_ms=random_source.choice((-1, -1, 0, random_source.log_uniform(1000, 60_000))),
    )
    pace = (election_ms + fetch_ms) / _USUAL_MS
    return _at_pace(settings, min(_SLOWEST_PACE, max(_FASTEST_PACE, pace)))


def round_trip_ms(network: NetworkOptions) -> int:
    """The round-trip time without late messages."""
    return 2 * (network.delay_us + network.jitter_us) // 1000


def _far_apart(network: NetworkOptions, random_source: RandomSource) -> NetworkOptions:
    """Controllers in other regions: round trips of 100 to 500 ms."""
    return replace(
        network,
        delay_us=random_source.between(50_000, 220_000),
        jitter_us=random_source.between(0, 30_000),
    )


def _at_pace(options: WorldOptions, pace: float) -> WorldOptions:
    """The same cluster, slower or faster."""
    paced = {
        name: max(1, round(value * pace))
        for name, value in flat(options)
        if value and (name in _LENGTHS or name.endswith("_every_ms"))
    }
    return with_fields(options, **paced)
