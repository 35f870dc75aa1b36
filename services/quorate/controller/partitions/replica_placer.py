"""Rack-aware replica placement for new partitions (Kafka's StripedReplicaPlacer).

Placement is deterministic. The preferred leader depends on the number of partitions placed before,
so that many topics of one partition are spread as well as one topic of many. After each full round
over the brokers the followers are shifted by one; otherwise two brokers would always share their
partitions.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from quorate.controller.partitions.rows import Index, Rows
    from quorate.controller.slices import Slices

# Positions examined for all partitions together between two pauses: a few milliseconds.
_STEPS_SLICE: Final = 64


@value_type
class RackedBroker:
    """A broker that may get replicas; brokers without a rack share one."""

    broker_id: int
    rack: str | None = None


def stripe(brokers: Iterable[RackedBroker]) -> tuple[RackedBroker, ...]:
    """The brokers, alternating between racks, and in id order within each rack."""
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

    `striped` comes from `stripe` and has at least `replication_factor` brokers; `placed` is the
    number of partitions placed before. A partition gets a second replica in the same rack only if
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
        # Each round takes one broker in every rack; the next one continues with the rest.
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
    """Every position once: the leader's, then the others, starting with the first follower's."""
    first = turn % count
    yield first
    shift = 1 + (turn // count) % max(count - 1, 1)
    for step in range(count):
        place = (first + shift + step) % count
        if place != first:
            yield place


def place_many_in_slices(
    striped: Sequence[RackedBroker], *, partitions: int, replication_factor: int, placed: int
) -> Slices[Rows]:
    """The results of `place` for many partitions: a row of replicas for each."""
    circles = _Circles(striped, partitions, replication_factor, placed)
    steps = 0
    while circles.take_step():
        steps += 1
        if steps % _STEPS_SLICE == 0:
            yield
    ids = np.array([broker.broker_id for broker in striped], np.int32)
    replicas: Rows = ids[circles.chosen]
    return replicas


class _Circles:
    """Places many partitions together; each iterates the brokers from its own leader on."""

    def __init__(
        self, striped: Sequence[RackedBroker], partitions: int, factor: int, placed: int
    ) -> None:
        racks = [broker.rack or "" for broker in striped]
        numbers = {rack: number for number, rack in enumerate(dict.fromkeys(racks))}
        self._racks = np.array([numbers[rack] for rack in racks])
        self._brokers, self._factor = len(striped), factor
        turns = np.arange(placed, placed + partitions)
        self._leaders = turns % self._brokers
        self._shifts = 1 + turns // self._brokers % max(self._brokers - 1, 1)
        # By partition: its next position, its number of replicas, and the racks used in this round.
        self._steps = np.zeros(partitions, np.intp)
        self._sizes = np.zeros(partitions, np.intp)
        self._used = np.zeros((partitions, len(numbers)), np.bool_)
        self._left: Index = np.arange(partitions)
        self.chosen = np.full((partitions, factor), -1, np.intp)

    def take_step(self) -> bool:
        """Examine one position for each partition; True if any of them still lacks replicas."""
        left = self._left
        places = self._places(left)
        racks = self._racks[places]
        is_taken = (self.chosen[left] == places[:, None]).any(axis=1) | self._used[left, racks]
        rows = left[~is_taken]
        self.chosen[rows, self._sizes[rows]] = places[~is_taken]
        self._sizes[rows] += 1
        self._used[rows, racks[~is_taken]] = True
        self._steps[left] += 1
        is_round_over = self._used[left].all(axis=1) | (self._steps[left] == self._brokers)
        over = left[is_round_over]
        self._steps[over] = 0
        self._used[over] = False
        self._left = left[self._sizes[left] < self._factor]
        return len(self._left) > 0

    def _places(self, rows: Index) -> Index:
        """The leader's position first, then the others, starting with the first follower's."""
        leaders, shifts, steps = self._leaders[rows], self._shifts[rows], self._steps[rows]
        # The followers' positions skip the leader's.
        behind = steps - 1 + (steps > self._brokers - shifts)
        places: Index = np.where(steps == 0, leaders, (leaders + shifts + behind) % self._brokers)
        return places
