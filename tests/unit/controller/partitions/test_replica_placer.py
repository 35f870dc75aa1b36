from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.partitions.replica_placer import (
    RackedBroker,
    place,
    place_many_in_slices,
    stripe,
)
from quorate.controller.slices import run_to_end

PLAIN = tuple(RackedBroker(broker_id) for broker_id in (1, 2, 3, 4))


def test_racks_alternate_whatever_order_the_brokers_come_in() -> None:
    brokers = [RackedBroker(5, "b"), RackedBroker(1, "a"), RackedBroker(2, "a"), RackedBroker(3)]
    expected = (RackedBroker(3), RackedBroker(1, "a"), RackedBroker(5, "b"), RackedBroker(2, "a"))
    assert stripe(brokers) == stripe(reversed(brokers)) == expected
    assert stripe([]) == ()


def test_leaders_go_round_and_followers_shift_after_each_round() -> None:
    placed = place(stripe(PLAIN), partitions=8, replication_factor=2, placed=0)
    assert placed == ((1, 2), (2, 3), (3, 4), (4, 1), (1, 3), (2, 4), (3, 1), (4, 2))


def test_topics_of_one_partition_are_spread_like_one_topic_of_many() -> None:
    many = place(stripe(PLAIN), partitions=12, replication_factor=3, placed=7)
    singles = tuple(
        place(stripe(PLAIN), partitions=1, replication_factor=3, placed=turn)[0]
        for turn in range(7, 19)
    )
    assert many == singles


def test_one_broker_takes_everything() -> None:
    placed = place(stripe(PLAIN[:1]), partitions=2, replication_factor=1, placed=3)
    assert placed == ((1,), (1,))


def test_two_racks_hold_three_replicas_in_both() -> None:
    racked = stripe(RackedBroker(broker_id, "ab"[broker_id % 2]) for broker_id in range(6))
    racks = {broker.broker_id: broker.rack for broker in racked}
    for replicas in place(racked, partitions=60, replication_factor=3, placed=0):
        assert sorted(Counter(racks[broker_id] for broker_id in replicas).values()) == [1, 2]


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_load_is_even_without_racks(factor: int) -> None:
    placed = place(stripe(PLAIN), partitions=12, replication_factor=factor, placed=0)
    leaders = Counter(replicas[0] for replicas in placed)
    replicas = Counter(broker_id for one in placed for broker_id in one)
    assert set(leaders.values()) == {3}
    assert set(replicas.values()) == {3 * factor}


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9),
    placed=st.integers(0, 10_000),
    data=st.data(),
)
def test_replicas_are_distinct_and_use_as_many_racks_as_they_can(
    racks: list[str | None], placed: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    striped = stripe(RackedBroker(number, rack) for number, rack in enumerate(racks))
    (replicas,) = place(striped, partitions=1, replication_factor=factor, placed=placed)
    assert len(set(replicas)) == factor
    used = {racks[broker_id] for broker_id in replicas}
    assert len(used) == min(factor, len(set(racks)))


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9),
    placed=st.integers(0, 10_000),
    partitions=st.integers(1, 40),
    data=st.data(),
)
def test_many_are_placed_as_each_is_alone(
    racks: list[str | None], placed: int, partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    striped = stripe(RackedBroker(number * 3, rack) for number, rack in enumerate(racks))
    alone = place(striped, partitions=partitions, replication_factor=factor, placed=placed)
    many = run_to_end(
        place_many_in_slices(
            striped, partitions=partitions, replication_factor=factor, placed=placed
        )
    )
    assert tuple(map(tuple, many.tolist())) == alone


def test_placing_many_pauses_where_one_rack_is_far_away() -> None:
    striped = stripe(RackedBroker(number, "b" if number == 0 else "a") for number in range(300))
    slices = place_many_in_slices(striped, partitions=8, replication_factor=2, placed=2)
    assert sum(1 for _ in slices) >= 4
