from __future__ import annotations

import pytest

from quorate.controller.partitions.partition import UNASSIGNED_DIR, Partition
from quorate.controller.partitions.records import changed
from quorate.records.ids import TopicId
from quorate.sim.log_generator.stock_records import expand, prefer, shrink

TOPIC = TopicId(b"\1" * 16)


def partition(**fields: object) -> Partition:
    given = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1} | fields
    replicas = given["replicas"]
    assert isinstance(replicas, tuple)
    directories = (UNASSIGNED_DIR,) * len(replicas)
    return Partition(**{"directories": directories} | given)  # type: ignore[arg-type]


def test_a_follower_leaves_the_isr_and_a_leader_does_not() -> None:
    record = shrink(TOPIC, 0, partition(), 3)
    assert record is not None
    assert changed(partition(), record).isr == (1, 2)
    assert shrink(TOPIC, 0, partition(), 1) is None
    assert shrink(TOPIC, 0, partition(isr=(1, 2)), 3) is None


def test_who_is_able_comes_back_and_nobody_else() -> None:
    behind = partition(isr=(1,))
    record = expand(TOPIC, 0, behind, {2})
    assert record is not None
    assert changed(behind, record).isr == (1, 2)
    assert changed(behind, record).leader_epoch == 0
    assert expand(TOPIC, 0, behind, ()) is None
    assert expand(TOPIC, 0, partition(leader=-1), {1, 2, 3}) is None


@pytest.mark.parametrize("leader", [1, 2])
def test_a_reassignment_ends_when_those_that_it_adds_are_in_sync(leader: int) -> None:
    moving = partition(
        replicas=(4, 2, 3, 1),
        isr=(1, 2, 3),
        leader=leader,
        adding_replicas=(4,),
        removing_replicas=(1,),
    )
    assert expand(TOPIC, 0, moving, {1, 2, 3}) is None
    record = expand(TOPIC, 0, moving, {4})
    assert record is not None
    done = changed(moving, record)
    assert done.replicas == (4, 2, 3)
    assert set(done.isr) == {2, 3, 4}
    assert (done.adding_replicas, done.removing_replicas) == ((), ())
    assert done.leader == (4 if leader == 1 else 2)
    assert done.leader_epoch == (leader == 1)


def test_the_preferred_replica_leads_again_once_it_is_in_sync() -> None:
    led_by_another = partition(leader=2)
    record = prefer(TOPIC, 0, led_by_another, {1, 2, 3})
    assert record is not None
    assert changed(led_by_another, record).leader == 1
    assert prefer(TOPIC, 0, partition(leader=2, isr=(2, 3)), {1, 2, 3}) is None
    assert prefer(TOPIC, 0, led_by_another, {2, 3}) is None
    assert prefer(TOPIC, 0, partition(), {1, 2, 3}) is None
