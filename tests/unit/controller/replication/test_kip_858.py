"""KIP-858: replicas lie in log directories, which change when a disk is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.partitions.partition import NO_LEADER
from tests.unit.controller.conftest import uuid
from tests.unit.controller.replication.test_alter_partition import (
    REPLICAS,
    alteration,
    asks,
    set_partition,
)
from tests.unit.controller.replication.test_elect_leaders import join, stop

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def replace_disk(cluster: Cluster, broker_id: int, log_dir: bytes) -> None:
    """The broker stops, and its next incarnation has that disk."""
    cluster.ask(cluster.heartbeat(broker_id, want_shut_down=True, want_fence=True))
    cluster.settle()
    cluster.start_brokers(broker_id, incarnation_id=log_dir[::-1], log_dirs=(log_dir,))
    cluster.settle()


def test_a_replica_that_was_copied_to_a_new_disk_leads_from_it(cluster: Cluster) -> None:
    cluster.create("t", REPLICAS)
    for broker_id in REPLICAS:
        replace_disk(cluster, broker_id, uuid(900 + broker_id))
        join(cluster, *REPLICAS)
    ((leader, isr),) = cluster.leading("t")
    assert leader in REPLICAS
    assert isr == REPLICAS
    assert cluster.partition("t").directories == (uuid(901), uuid(902), uuid(903))


def test_a_replica_that_joined_from_a_new_disk_does_not_lead_from_the_old_one(
    cluster: Cluster,
) -> None:
    """That one lacks what was committed since; the ISR has who has it."""
    cluster.create("t", REPLICAS)
    (before,) = cluster.image.brokers.by_id[1].registration.log_dirs
    replace_disk(cluster, 1, uuid(901))
    join(cluster, *REPLICAS)
    stop(cluster, 2)
    stop(cluster, 3)
    assert cluster.partition("t").leader == 1
    replace_disk(cluster, 1, before)
    assert cluster.partition("t").leader == NO_LEADER


def test_a_partition_that_a_completed_reassignment_leaves_without_a_leader_is_looked_at(
    cluster: Cluster,
) -> None:
    """Unclean elections are allowed: the replica that remains leads immediately."""
    cluster.create("t", REPLICAS, configs=(("unclean.leader.election.enable", "true"),))
    set_partition(cluster, isr=(1, 2), adding_replicas=(2,), removing_replicas=(1,))
    cluster.ask(cluster.registration(2, log_dirs=(uuid(999),)))
    cluster.settle()
    # Broker 2 stays in the ISR: that it has been copied to its new disk is not known.
    cluster.ask(asks(cluster, alteration(cluster, 2, 1)))
    cluster.settle()
    assert cluster.partition("t").leader == 3
