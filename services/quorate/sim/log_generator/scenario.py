"""Plan of incidents: restarts, crashes, elections, membership changes; drawn from the seed alone.

A cluster is set up on a Monday at midnight. In the week that follows its brokers are restarted one
after the other, once for a new release and once for a new setting. Some crash, one of them
repeatedly, and some are isolated for a while. A broker is drained and removed, and another one is
added. Partitions are moved, ACLs are revoked. The controllers elect new leaders. A new voter
replaces an old one, a disk is replaced, and a voter moves. The bulk of a log, replicas that lag and
catch up and topics that are created and deleted, is drawn by the minute in `background_load.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.records.value_types import value_type
from quorate.sim.log_generator.options import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.sim.log_generator.options import WeekOptions

FIRST_BROKER_ID: Final = 101
CONTROLLERS_MIN: Final = 3
# broker.session.timeout.ms: a session without heartbeats expires after this time.
SESSION_MS: Final = 9 * SECOND_MS
# The time for the set-up, without incidents.
SETUP_MS: Final = HOUR_MS
_ROLL_MS_MAX: Final = 12 * HOUR_MS
_RESTART_EVERY_MS: Final = 3 * MINUTE_MS
_EPOCHS_LOST: Final = ((0, 0.8), (1, 0.15), (2, 0.05))


@value_type
class Restart:
    """A controlled restart: the broker moves its leaders, stops, and starts after `down_ms`."""

    broker: int
    down_ms: int


@value_type
class Crash:
    """Processes that crash at the same time; the controller notices when sessions expire."""

    brokers: tuple[int, ...]
    down_ms: int


@value_type
class BrokerIsolated:
    """A broker that cannot reach the controllers for a while; its process continues."""

    broker: int
    silent_ms: int


@value_type
class MetadataVersionRaised:
    """All brokers run the new release: the new metadata.version is finalised."""


@value_type
class Election:
    """The leader resigns or crashes; a new one after `gap_ms` and `epochs_lost` lost elections."""

    is_orderly: bool
    gap_ms: int
    epochs_lost: int


@value_type
class VoterAdded:
    """A new controller has caught up as an observer and becomes a voter."""

    node: int


@value_type
class VoterRemoved:
    node: int


@value_type
class DiskReplaced:
    """A controller has lost its disk: its voter is removed and joins again with an empty disk."""

    node: int


@value_type
class VoterMoved:
    """A controller has moved to another address."""

    node: int


@value_type
class PartitionsMoved:
    """An operator moves a few topics to other brokers."""

    topics: int


@value_type
class BrokerDrained:
    """All replicas of a broker are moved away; `stop_after_ms` later it is stopped and removed."""

    broker: int
    stop_after_ms: int


@value_type
class BrokerAdded:
    """A broker with a new id is added and gets some of the load."""

    broker: int


@value_type
class AclsRevoked:
    """A user leaves: their ACLs, quotas, credentials and tokens are revoked."""


Incident: TypeAlias = (
    Restart
    | Crash
    | BrokerIsolated
    | MetadataVersionRaised
    | Election
    | VoterAdded
    | VoterRemoved
    | DiskReplaced
    | VoterMoved
    | PartitionsMoved
    | BrokerDrained
    | BrokerAdded
    | AclsRevoked
)


@value_type
class Planned:
    """An incident and its time in ms since the start of the week."""

    at_ms: int
    incident: Incident


@value_type
class Controllers:
    """The voters: `first` at the beginning, `last` at the end.

    `written` are the voters in `last` whose directories are written; the first of them has the
    complete history. The disk of `refilled` was replaced, `newcomer` was added during the week.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    written: tuple[int, ...]
    refilled: int
    newcomer: int
    leaver: int


def controllers_of(options: WeekOptions) -> Controllers:
    """The controllers: three, or more if more directories are requested."""
    count = max(CONTROLLERS_MIN, options.voters)
    first = tuple(range(1, count + 1))
    last = (*first[1:], count + 1)
    order = (3, 2, count + 1, *range(4, count + 1))
    return Controllers(first, last, order[: options.voters], 2, count + 1, 1)


def broker_ids(options: WeekOptions) -> range:
    """The brokers of the first day."""
    return range(FIRST_BROKER_ID, FIRST_BROKER_ID + options.brokers)


def plan(options: WeekOptions) -> list[Planned]:
    """All incidents in the order of their times."""
    found = [
        *_rolls(options),
        *_crashes(options, RandomSource(options.seed, "crashes")),
        *_silences(options, RandomSource(options.seed, "silences")),
        *_elections(options, RandomSource(options.seed, "elections")),
        *_voter_changes(options, RandomSource(options.seed, "voters")),
        *_moves(options, RandomSource(options.seed, "moves")),
    ]
    return sorted(found, key=lambda planned: planned.at_ms)


def _at(options: WeekOptions, share: float) -> int:
    """The time at the fraction `share` of the week after its set-up, in ms."""
    return SETUP_MS + int(share * (options.duration_ms - 2 * SETUP_MS))


def _times(
    options: WeekOptions, random_source: RandomSource, per_week: float, at_least: int = 1
) -> list[int]:
    """Random times in ms after the set-up, on average `per_week` in seven days."""
    count = max(at_least, round(per_week * options.duration_ms / (7 * DAY_MS)))
    return [_at(options, random_source.random.random()) for _ in range(count)]


def _rolls(options: WeekOptions) -> Iterator[Planned]:
    """Two restarts of every broker: for a release first, for a setting later."""
    draws = RandomSource(options.seed, "rolls")
    every_ms = min(_RESTART_EVERY_MS, _ROLL_MS_MAX // options.brokers)
    # At most half a day, and both rolling restarts must fit in a short week.
    every_ms = min(every_ms, options.duration_ms // 8 // options.brokers)
    for share, is_release in ((0.15, True), (0.65, False)):
        at_ms = _at(options, share)
        for broker in broker_ids(options):
            down_ms = draws.between(every_ms // 5, every_ms // 2)
            yield Planned(at_ms, Restart(broker, down_ms))
            at_ms += every_ms
        if is_release:
            yield Planned(at_ms + 10 * MINUTE_MS, MetadataVersionRaised())


def _crashes(options: WeekOptions, random_source: RandomSource) -> Iterator[Planned]:
    """Single crashes, one broker that crashes repeatedly, and some brokers of a rack together."""
    ids = broker_ids(options)
    for at_ms in _times(options, random_source, 0.1 * options.brokers):
        down_ms = random_source.between(30 * SECOND_MS, 2 * HOUR_MS)
        yield Planned(at_ms, Crash((random_source.random.choice(ids),), down_ms))
    flapping, at_ms = (
        random_source.random.choice(ids),
        _at(options, 0.3 + 0.2 * random_source.random.random()),
    )
    for _ in range(random_source.between(5, 9)):
        down_ms = random_source.between(15 * SECOND_MS, 90 * SECOND_MS)
        yield Planned(at_ms, Crash((flapping,), down_ms))
        at_ms += down_ms + random_source.between(MINUTE_MS, 12 * MINUTE_MS)
    together = tuple(ids[random_source.between(0, 2) :: 3][: max(2, options.brokers // 20)])
    yield Planned(
        _at(options, 0.5 + 0.1 * random_source.random.random()),
        Crash(together, random_source.between(5 * MINUTE_MS, 40 * MINUTE_MS)),
    )


def _silences(options: WeekOptions, random_source: RandomSource) -> Iterator[Planned]:
    for at_ms in _times(options, random_source, 3 + 0.1 * options.brokers):
        broker = random_source.random.choice(broker_ids(options))
        yield Planned(
            at_ms, BrokerIsolated(broker, random_source.between(2 * SECOND_MS, 60 * SECOND_MS))
        )


def _elections(options: WeekOptions, random_source: RandomSource) -> Iterator[Planned]:
    """Elections; after a crash the gap is longer, because the voters must detect it first."""
    for number, at_ms in enumerate(sorted(_times(options, random_source, 6, 3))):
        is_orderly = number % 2 == 1 or random_source.chance(0.2)
        gap_ms = (
            random_source.between(30, 400)
            if is_orderly
            else random_source.between(300, 4 * SECOND_MS)
        )
        at = random_source.random.random()
        lost = 0
        for count, share in _EPOCHS_LOST:
            if at < share:
                lost = count
                break
            at -= share
        yield Planned(at_ms, Election(is_orderly, gap_ms + 1500 * lost, lost))


def _voter_changes(options: WeekOptions, random_source: RandomSource) -> Iterator[Planned]:
    who = controllers_of(options)
    joined_ms = _at(options, 0.35 + 0.05 * random_source.random.random())
    yield Planned(joined_ms, VoterAdded(who.newcomer))
    # The voter may be the leader, which then resigns first.
    left_ms = joined_ms + random_source.between(10 * MINUTE_MS, HOUR_MS)
    yield Planned(left_ms, VoterRemoved(who.leaver))
    yield Planned(
        _at(options, 0.55 + 0.05 * random_source.random.random()), DiskReplaced(who.refilled)
    )
    yield Planned(
        _at(options, 0.85 + 0.05 * random_source.random.random()), VoterMoved(who.newcomer)
    )


def _moves(options: WeekOptions, random_source: RandomSource) -> Iterator[Planned]:
    for at_ms in _times(options, random_source, 4):
        yield Planned(at_ms, PartitionsMoved(max(1, options.topic_count // 100)))
    ids = broker_ids(options)
    drained_ms = _at(options, 0.8 + 0.05 * random_source.random.random())
    stop_after_ms = min(6 * HOUR_MS, options.duration_ms // 40)
    yield Planned(drained_ms, BrokerDrained(random_source.random.choice(ids), stop_after_ms))
    yield Planned(drained_ms + random_source.between(0, HOUR_MS), BrokerAdded(ids.stop))
    for at_ms in _times(options, random_source, 2):
        yield Planned(at_ms, AclsRevoked())
