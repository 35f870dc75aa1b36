from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.replication import leader_balancer
from quorate.controller.replication.messages import TopicAlteration
from tests.unit.controller.conftest import uuid
from tests.unit.controller.replication.test_alter_partition import alteration, asks

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.controller.conftest import Cluster

INTERVAL_MS = 300_000
PARTITIONS = 10


def imbalanced(cluster: Cluster) -> Cluster:
    """Broker 2 leads what its neighbour should lead, and partition 0 has another first replica."""
    cluster.start_brokers(1, 2)
    cluster.create("t", (2, 1), *[(1, 2)] * PARTITIONS)
    cluster.ask(cluster.heartbeat(1, want_fence=True))
    cluster.settle()
    assert not cluster.ask(cluster.heartbeat(1)).is_fenced
    cluster.settle()
    return cluster


def take_back(cluster: Cluster, *partition_ids: int) -> None:
    """Broker 2 takes broker 1 into the ISRs of these."""
    asked = tuple(alteration(cluster, 2, 1, partition_id=each) for each in partition_ids)
    topic = cluster.image.topics.by_name_or_none("t")
    assert topic is not None
    topics = (TopicAlteration(topic.topic_id, asked),)
    cluster.ask(asks(cluster, sender=2, topics=topics))


def leaders(cluster: Cluster) -> list[int]:
    return [leader for leader, _ in cluster.leading("t")]


def pass_time(cluster: Cluster, ms: int) -> int:
    """Let time go by in which the brokers are heard; how many records are decided then."""
    cluster.now_ms += ms
    cluster.controller.reset_timers(cluster.now_ms)
    return sum(len(records) for records in cluster.settle())


@pytest.mark.parametrize("records_slice", [3, 1024])
@pytest.mark.parametrize("cells_slice", [40, 49_152])
def test_first_replicas_lead_again_once_it_is_time(
    make_cluster: Callable[..., Cluster],
    monkeypatch: pytest.MonkeyPatch,
    records_slice: int,
    cells_slice: int,
) -> None:
    monkeypatch.setattr(leader_balancer, "RECORDS_SLICE", records_slice)
    monkeypatch.setattr(leader_balancer, "CELLS_SLICE", cells_slice)
    cluster = imbalanced(make_cluster())
    take_back(cluster, *range(1, PARTITIONS))
    assert pass_time(cluster, INTERVAL_MS - 1) == 0
    assert leaders(cluster) == [2] * (PARTITIONS + 1)
    before = cluster.partition("t", 1)
    assert pass_time(cluster, 1) == PARTITIONS - 1
    # The last one's first replica is not in sync.
    assert leaders(cluster) == [2, *[1] * (PARTITIONS - 1), 2]
    after = cluster.partition("t", 1)
    assert (after.isr, after.leader_epoch) == (before.isr, before.leader_epoch + 1)
    take_back(cluster, PARTITIONS)
    assert pass_time(cluster, INTERVAL_MS - 1) == 0
    assert pass_time(cluster, 1) == 1
    assert pass_time(cluster, INTERVAL_MS) == 0


def test_it_may_be_switched_off(make_cluster: Callable[..., Cluster]) -> None:
    cluster = imbalanced(make_cluster(auto_leader_rebalance_enable=False))
    take_back(cluster, 1)
    assert pass_time(cluster, 10 * INTERVAL_MS) == 0
    assert leaders(cluster) == [2] * (PARTITIONS + 1)


def test_the_interval_is_a_setting(make_cluster: Callable[..., Cluster]) -> None:
    cluster = imbalanced(make_cluster(leader_imbalance_check_interval_ms=1000))
    take_back(cluster, 1)
    assert pass_time(cluster, 999) == 0
    assert pass_time(cluster, 1) == 1


def test_who_may_not_lead_is_not_elected(make_cluster: Callable[..., Cluster]) -> None:
    cluster = imbalanced(make_cluster())
    take_back(cluster, *range(1, PARTITIONS + 1))
    cluster.ask(cluster.heartbeat(1, want_fence=True))
    cluster.settle()
    assert pass_time(cluster, INTERVAL_MS) == 0
    assert leaders(cluster) == [2] * (PARTITIONS + 1)


def test_a_replica_whose_directory_is_offline_is_not_elected(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = imbalanced(make_cluster())
    take_back(cluster, *range(1, PARTITIONS + 1))
    cluster.ask(cluster.registration(1, log_dirs=(uuid(777),)))
    cluster.settle()
    assert pass_time(cluster, INTERVAL_MS) == 0
    assert leaders(cluster) == [2] * (PARTITIONS + 1)
    cluster.ask(cluster.registration(1))
    cluster.settle()
    assert pass_time(cluster, INTERVAL_MS) == PARTITIONS
