"""Values that follow from the registered brokers, computed or carried from change to change."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from immutables import Map

from quorate.controller.brokers.image import Broker, Brokers
from quorate.controller.partitions.partition import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR
from quorate.controller.partitions.replica_placer import RackedBroker
from quorate.records.ids import DirectoryId, Offset
from quorate.records.metadata import BrokerFeature, RegisterBrokerRecord

ONE, TWO = DirectoryId(b"1" * 16), DirectoryId(b"2" * 16)


def broker(broker_id: int, **fields: object) -> Broker:
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=bytes(16),
        broker_epoch=7,
        end_points=(),
        **({"features": (), "rack": None, "fenced": False} | fields),  # type: ignore[arg-type]
    )
    return Broker(record, Offset(7))


def brokers(*members: Broker) -> Brokers:
    return Brokers(Map({member.registration.broker_id: member for member in members}))


def test_brokers_are_active_unless_fenced_or_shutting_down() -> None:
    members = brokers(broker(1), broker(2, fenced=True), broker(3, in_controlled_shutdown=True))
    assert members.active == {1}


def test_only_active_brokers_with_a_disk_that_is_not_cordoned_get_replicas() -> None:
    members = brokers(
        broker(1, rack="a"),
        broker(2, fenced=True),
        broker(3, log_dirs=(ONE, TWO), cordoned_log_dirs=(TWO, ONE)),
        broker(4, log_dirs=(ONE, TWO), cordoned_log_dirs=(ONE,)),
        broker(5, log_dirs=(ONE,), cordoned_log_dirs=()),
    )
    assert set(members.striped) == {RackedBroker(1, "a"), RackedBroker(4), RackedBroker(5)}


@pytest.mark.parametrize(
    ("log_dirs", "expected"),
    [
        ((ONE,), {ONE, MIGRATING_DIR, UNASSIGNED_DIR}),
        ((ONE, TWO), {ONE, TWO, MIGRATING_DIR, UNASSIGNED_DIR}),
        # As before there were directories: which of them are there is not known.
        ((), {ONE, TWO, MIGRATING_DIR, UNASSIGNED_DIR}),
    ],
)
def test_directories_are_online_that_the_broker_has(
    log_dirs: tuple[DirectoryId, ...], expected: set[DirectoryId]
) -> None:
    member = broker(1, log_dirs=log_dirs)
    every = (ONE, TWO, MIGRATING_DIR, UNASSIGNED_DIR, LOST_DIR)
    assert {each for each in every if member.has_online(each)} == expected


def test_where_a_registration_lay_makes_no_difference_between_images() -> None:
    assert Broker(broker(1).registration, Offset(3)) == broker(1)
    assert brokers(broker(1)) != brokers(broker(1, rack="a"))


FEATURES = tuple(
    BrokerFeature(name="kraft.version", min_supported_version=0, max_supported_version=level)
    for level in (0, 1)
)


def drawn(draws: random.Random) -> Broker:
    """Any broker, of few ids and directories, so that brokers meet in all of them."""
    directories = draws.sample([ONE, TWO, DirectoryId(b"3" * 16)], draws.randrange(3))
    return broker(
        draws.randrange(8),
        fenced=draws.random() < 0.4,
        in_controlled_shutdown=draws.random() < 0.3,
        rack=draws.choice([None, "a", "b"]),
        log_dirs=tuple(directories),
        cordoned_log_dirs=draws.choice([None, (), (ONE,), tuple(directories)]),
        features=draws.choice([(), FEATURES[:1], FEATURES[1:]]),
    )


@pytest.mark.parametrize("seed", range(20))
def test_what_is_carried_on_from_change_to_change_is_what_follows_anew(seed: int) -> None:
    draws = random.Random(seed)
    # Known from the beginning, as after a replay, or from some change on.
    members = Brokers() if seed % 2 else brokers(*(drawn(draws) for _ in range(4)))
    names = ("active", "holders", "totals", "striped")
    for _ in range(200):
        if members.by_id and draws.random() < 0.3:
            members = members.without(draws.choice(sorted(members.by_id)))
        else:
            members = members.with_broker(drawn(draws))
        rebuilt = Brokers(members.by_id)
        # Some are asked for now and then only.
        for name in draws.sample(names, draws.randrange(len(names) + 1)):
            assert getattr(members, name) == getattr(rebuilt, name), name
        if draws.random() < 0.5:
            assert members.kraft_version_max == rebuilt.kraft_version_max
            assert members.fenced_count == sum(
                each.registration.fenced for each in members.by_id.values()
            )
            assert len(members.by_id) == (
                len(rebuilt.active) + members.fenced_count + members.shutting_down_count
            )


def test_the_holders_of_a_directory_are_all_that_have_it() -> None:
    # Two brokers of one directory are in no log but one that another controller has written.
    members = brokers(broker(2, log_dirs=(ONE,)), broker(1, log_dirs=(ONE, TWO)))
    assert dict(members.holders) == {ONE: (1, 2), TWO: (1,)}
    assert dict(members.without(1).holders) == {ONE: (2,)}
    moved = members.with_broker(broker(1, log_dirs=(TWO,))).without(2)
    assert dict(moved.holders) == {TWO: (1,)}


def test_the_lowest_kraft_version_of_all_counts() -> None:
    old, new = broker(1, features=FEATURES[:1]), broker(2, features=FEATURES[1:])
    assert Brokers().kraft_version_max is None
    assert Brokers().with_broker(new).kraft_version_max == 1
    assert Brokers().with_broker(new).with_broker(old).kraft_version_max == 0
    upgraded = replace(old.registration, features=FEATURES[1:])
    both = Brokers().with_broker(new).with_broker(old)
    assert both.with_broker(Broker(upgraded, Offset(9))).kraft_version_max == 1
