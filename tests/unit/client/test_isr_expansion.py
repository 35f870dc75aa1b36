"""Tests of the replicas that leaders want back in the ISR."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.client.isr_expansion import IsrExpansion
from quorate.controller.partitions.partition import MIGRATING_DIR, RECOVERING, Partition
from quorate.controller.partitions.rows import PartitionRows, key_of
from quorate.records.ids import TopicId
from tests.unit.controller.conftest import Cluster

if TYPE_CHECKING:
    from quorate.client.isr_expansion import WantedAlteration

TOPIC = TopicId(b"\x10" * 16)
WHOLE = Partition(
    replicas=(1, 2, 3),
    isr=(1, 2, 3),
    leader=1,
    leader_epoch=4,
    partition_epoch=9,
    directories=(MIGRATING_DIR,) * 3,
)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.start_brokers(1, 2, 3)
    return cluster


def wanted(
    cluster: Cluster, *partitions: Partition, leaders: tuple[int, ...] = (1,)
) -> list[WantedAlteration]:
    rows = PartitionRows.made([(key_of(0, i), TOPIC, p) for i, p in enumerate(partitions)])
    return list(IsrExpansion(cluster.image.brokers, leaders).wanted(rows))


def isrs(found: list[WantedAlteration]) -> list[tuple[int, ...]]:
    return [tuple(member.broker_id for member in one.alteration.new_isr) for one in found]


def test_active_replicas_are_asked_for_behind_those_that_are_in_sync(cluster: Cluster) -> None:
    (one,) = wanted(cluster, WHOLE, replace(WHOLE, replicas=(3, 2, 1), isr=(1,)))
    assert (one.leader, one.topic_id) == (1, TOPIC)
    asked = one.alteration
    assert (asked.partition_index, asked.leader_epoch, asked.partition_epoch) == (1, 4, 9)
    brokers = cluster.image.brokers.by_id
    assert [(member.broker_id, member.broker_epoch) for member in asked.new_isr] == [
        (broker_id, brokers[broker_id].registration.broker_epoch) for broker_id in (1, 3, 2)
    ]


def test_only_leaders_that_are_asked_about_want_anything(cluster: Cluster) -> None:
    lacking = replace(WHOLE, isr=(1,))
    assert wanted(cluster, lacking, leaders=(2, 3, 9)) == []
    assert wanted(cluster, replace(lacking, leader=-1)) == []
    assert wanted(cluster) == []


def test_replicas_that_are_not_active_stay_out_and_are_left_out(cluster: Cluster) -> None:
    cluster.ask(cluster.heartbeat(2, want_fence=True))
    assert wanted(cluster, replace(WHOLE, isr=(1, 3))) == []
    assert isrs(wanted(cluster, replace(WHOLE, isr=(2, 1)))) == [(1, 3)]
    assert wanted(cluster, replace(WHOLE, leader=2, isr=(2,)), leaders=(2,)) == []


def test_a_leader_that_recovers_says_so_first(cluster: Cluster) -> None:
    recovering = replace(WHOLE, isr=(1,), leader_recovery_state=RECOVERING)
    (one,) = found = wanted(cluster, recovering)
    assert (isrs(found), one.alteration.leader_recovery_state) == ([(1,)], 0)
