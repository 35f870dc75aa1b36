from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from immutables import Map

from quorate.controller.brokers.image import Broker, Brokers
from quorate.controller.image import MetadataImage
from quorate.records.ids import Epoch, Offset
from quorate.records.metadata import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorate.sim.checkers.oracle import Violation
from quorate.sim.checkers.overlay_differential import RandomDecisions, Standby, require_equal
from quorate.sim.mutants.decisions import BUGS
from quorate.sim.mutants.registry import apply_mutant
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from quorate.records.metadata import MetadataRecord


def lead(seed: int, rounds: int) -> list[MetadataRecord]:
    """The decisions of one leader, all of them committed as soon as they are cut."""
    decisions, standby = RandomDecisions(RandomSource(seed, "decisions")), Standby()
    ways = decisions.lead(standby.image, Epoch(1), 0)
    records: list[MetadataRecord] = []
    for number in range(rounds):
        for batch in decisions.batches(ways, number * 500):
            standby.replay(batch)
            ways.commit(batch)
            records += batch.records
    return records


def test_a_leader_is_asked_for_all_that_it_can_decide() -> None:
    assert {type(record) for record in lead(1, 60)} == {
        BrokerRegistrationChangeRecord,
        ConfigRecord,
        FeatureLevelRecord,
        PartitionChangeRecord,
        PartitionRecord,
        RegisterBrokerRecord,
        RemoveTopicRecord,
        TopicRecord,
        UnregisterBrokerRecord,
    }


@pytest.mark.parametrize("name", [bug.name for bug in BUGS])
def test_ways_that_part_are_a_violation(name: str) -> None:
    with apply_mutant(name), pytest.raises(Violation):
        lead(1, 60)


def test_a_difference_is_named() -> None:
    image = MetadataImage()
    require_equal(image, MetadataImage(), "of nobody")
    with pytest.raises(Violation, match=r"^features below 0 differ from those of nobody$"):
        require_equal(image, replace(image, features=Map(a=1)), "of nobody")


def test_offsets_of_brokers_count_although_images_are_equal_without_them() -> None:
    registration = RegisterBrokerRecord(
        broker_id=1, incarnation_id=bytes(16), broker_epoch=1, end_points=(), features=(), rack=None
    )
    one, other = (
        MetadataImage(brokers=Brokers(Map({1: Broker(registration, Offset(offset))})))
        for offset in (1, 2)
    )
    assert one == other
    with pytest.raises(Violation, match=r"^offsets of brokers below 0"):
        require_equal(one, other, "of nobody")
