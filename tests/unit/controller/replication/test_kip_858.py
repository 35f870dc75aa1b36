"""KIP-858: replicas lie in log directories, which change when a disk is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.partitions import NO_LEADER
from quorate.controller.replication.messages import AlterPartitionReply
from quorate.records.errors import ErrorCode
from quorate.records.metadata import PartitionChangeRecord
from tests.unit.controller.conftest import uuid
from tests.unit.controller.replication.test_alter_partition import (
    REPLICAS,
    alteration,
    asks,
    member,
    result_of,
)

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.create("t", REPLICAS)
    return cluster


def replace_disk(cluster: Cluster, broker_id: int, log_dir: int) -> None:
    """The broker stops, and its next incarnation has another disk."""
    cluster.ask(cluster.heartbeat(broker_id, want_shut_down=True, want_fence=True))
    cluster.settle()
    incarnation_id = log_dir.to_bytes(16, "big")
    cluster.start_brokers(broker_id, incarnation_id=incarnation_id, log_dirs=(uuid(log_dir),))
    cluster.settle()


def join(cluster: Cluster, broker_id: int) -> None:
    """The leader has it in sync."""
    now = cluster.partition("t")
    isr = tuple(member(cluster, id_) for id_ in sorted({*now.isr, broker_id}))
    asked = alteration(cluster, new_isr=isr)
    reply = cluster.ask(asks(cluster, asked, sender=now.leader))
    assert isinstance(reply, AlterPartitionReply)
    assert result_of(reply).error is ErrorCode.NONE


def test_a_replica_that_was_copied_to_a_new_disk_leads_from_it(cluster: Cluster) -> None:
    for broker_id in REPLICAS:
        replace_disk(cluster, broker_id, 900 + broker_id)
        join(cluster, broker_id)
    now = cluster.partition("t")
    assert now.leader in REPLICAS
    assert sorted(now.isr) == [1, 2, 3]
    assert now.directories == (uuid(901), uuid(902), uuid(903))


def test_a_replica_that_joined_from_a_new_disk_does_not_lead_from_the_old_one(
    cluster: Cluster,
) -> None:
    """That one lacks what was committed since; the ISR has who has it."""
    (before,) = cluster.image.brokers.by_id[1].registration.log_dirs
    replace_disk(cluster, 1, 901)
    join(cluster, 1)
    for broker_id in (2, 3):
        cluster.ask(cluster.heartbeat(broker_id, want_fence=True))
        cluster.settle()
    assert cluster.partition("t").leader == 1
    cluster.ask(cluster.heartbeat(1, want_shut_down=True, want_fence=True))
    cluster.settle()
    cluster.start_brokers(1, incarnation_id=b"o" * 16, log_dirs=(before,))
    cluster.settle()
    assert cluster.partition("t").leader == NO_LEADER


def test_a_partition_that_a_completed_reassignment_leaves_without_a_leader_is_looked_at(
    cluster: Cluster,
) -> None:
    """Unclean elections are allowed: who remains leads at once."""
    unclean = ConfigChange("unclean.leader.election.enable", AlterOperation.SET, "true")
    resource = ConfigResource(ResourceType.TOPIC, "t")
    cluster.ask(IncrementalAlterConfigs((ConfigAlteration(resource, (unclean,)),)))
    topic = cluster.image.topics.named("t")
    assert topic is not None
    cluster.write(
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topic.topic_id,
            isr=(1, 2),
            adding_replicas=(2,),
            removing_replicas=(1,),
        )
    )
    cluster.ask(cluster.registration(2, log_dirs=(uuid(999),)))
    cluster.settle()
    # Broker 2 stays in the ISR: that it has been copied to its new disk is not known.
    asked = alteration(cluster, new_isr=(member(cluster, 2), member(cluster, 1)))
    cluster.ask(asks(cluster, asked))
    cluster.settle()
    assert cluster.partition("t").leader == 3
