"""Where the replicas of a new topic go: spread over brokers and racks, the same on every run.

A counter that grows with each partition of the cluster chooses the preferred leader, so that many
topics of one partition are spread as well as one topic of many. After each full round over the
brokers the followers are shifted by one, or else two brokers would always share their partitions.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from quorate.records.value import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@value
class RackedBroker:
    """A broker that may be given replicas; no rack counts as a rack of its own kind."""

    broker_id: int
    rack: str | None = None


def stripe(brokers: Iterable[RackedBroker]) -> tuple[RackedBroker, ...]:
    """The brokers one rack after the other, again and again, each rack in order of its ids."""
    racks: dict[str, list[RackedBroker]] = {}
    for broker in sorted(brokers, key=attrgetter("broker_id")):
        racks.setdefault(broker.rack or "", []).append(broker)
    queues = [racks[rack] for rack in sorted(racks)]
    rounds = max(map(len, queues), default=0)
    return tuple(queue[turn] for turn in range(rounds) for queue in queues if turn < len(queue))


def place(
    striped: Sequence[RackedBroker], *, partitions: int, replication_factor: int, placed: int
) -> tuple[tuple[int, ...], ...]:
    """The replicas of each new partition, preferred leader first.

    `striped` comes from `stripe` and holds at least `replication_factor` brokers; `placed` is how
    many partitions were placed before. A partition gets a second replica in one rack only where
    there are fewer racks than replicas.
    """
    racks = len({broker.rack or "" for broker in striped})
    return tuple(
        _place_one(striped, replication_factor, turn, racks)
        for turn in range(placed, placed + partitions)
    )


def _place_one(
    striped: Sequence[RackedBroker], replication_factor: int, turn: int, racks: int
) -> tuple[int, ...]:
    chosen: list[int] = []
    while True:
        # Each round takes one replica in every rack; the next goes round again for the rest.
        used: set[str] = set()
        for place in _circle(len(striped), turn):
            rack = striped[place].rack or ""
            if place in chosen or rack in used:
                continue
            chosen.append(place)
            used.add(rack)
            if len(chosen) == replication_factor:
                return tuple(striped[place].broker_id for place in chosen)
            if len(used) == racks:
                break


def _circle(count: int, turn: int) -> Iterator[int]:
    """Every place once: the leader's, then the others from where the followers begin."""
    first = turn % count
    yield first
    shift = 1 + (turn // count) % max(count - 1, 1)
    for step in range(count):
        place = (first + shift + step) % count
        if place != first:
            yield place
