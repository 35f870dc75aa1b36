"""Fencing, unfencing and unregistering in slices: bounded, complete, whatever comes in between."""

from __future__ import annotations

import random
import secrets
import sys
from typing import TYPE_CHECKING

import pytest

from quorate.controller.brokers.messages import UnregisterBroker
from quorate.controller.partitions import leader_isr_sweep, tree
from quorate.controller.partitions.leader_election import needs_election, partition_change
from quorate.controller.partitions.partition import NO_LEADER, UNASSIGNED_DIR
from quorate.controller.partitions.rows import FIXED, key_of
from quorate.controller.topics.messages import DeleteTopics
from quorate.records.ids import DirectoryId, Epoch
from quorate.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.unit.controller.conftest import uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
    from quorate.controller.partitions.partition import Partition
    from quorate.controller.partitions.rows import Bits, PartitionRows
    from tests.unit.controller.conftest import Cluster


def assert_settled(image: MetadataImage) -> None:
    """Check that every leader may lead, every ISR is as it may be, and no partition is left out."""
    active = image.brokers.active

    def may_lead(partition: Partition, broker_id: int) -> bool:
        if broker_id not in active:
            return False
        # Each of these topics has directories that were there when it was made.
        directory = partition.directories[partition.replicas.index(broker_id)]
        log_dirs = image.brokers.by_id[broker_id].registration.log_dirs
        return directory in (UNASSIGNED_DIR, *log_dirs)

    for topic_id in image.topics.by_id:
        for _, partition in image.topics.partitions_of(topic_id):
            in_sync = set(partition.isr)
            candidates = [each for each in partition.isr if may_lead(partition, each)]
            assert partition.leader == -1 or partition.leader in candidates
            assert in_sync <= active or not candidates
            assert (partition.leader == -1) is not bool(candidates)


@pytest.fixture
def topics(cluster: Cluster) -> Cluster:
    """Many small topics and a large one; the brokers 2 and 3 are heard for longer than 1."""
    for number in range(20):
        cluster.create(f"small-{number}", (1, 2), (2, 3))
    cluster.create("large", *[(1, 2)] * 30)
    cluster.now_ms = 5000
    for broker_id in (2, 3):
        cluster.ask(cluster.heartbeat(broker_id))
    cluster.now_ms = 9000
    return cluster


def test_a_slice_has_a_bound_and_the_record_about_the_broker_comes_first(
    topics: Cluster, short_slices: int
) -> None:
    slices = topics.settle()
    assert isinstance(slices[0][0], BrokerRegistrationChangeRecord)
    changes = [record for records in slices for record in records][1:]
    assert all(isinstance(record, PartitionChangeRecord) for record in changes)
    assert len(changes) == 20 + 30
    assert max(map(len, slices[1:])) == short_slices == len(slices[0]) - 1
    assert_settled(topics.image)


def test_a_slice_compares_so_many_rows_and_no_more(
    topics: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "ROWS_MAX", 3)
    topics.create("more", *[(1, 2, 3)] * 40)
    monkeypatch.setattr(leader_isr_sweep, "CELLS_SLICE", 6 * (FIXED + 2 * 3))
    looked_at: list[int] = []

    def noting(rows: PartitionRows, acceptor: LeaderAcceptor) -> Bits:
        looked_at.append(len(rows))
        return needs_election(rows, acceptor)

    monkeypatch.setattr(leader_isr_sweep, "needs_election", noting)
    topics.settle()
    assert_settled(topics.image)
    assert max(looked_at) <= 6
    assert sum(looked_at) >= 40 + 30 + 40


def test_partitions_that_are_looked_at_alone_are_few_at_a_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that wait for a replica in sync are unpacked each time, and seldom change."""
    monkeypatch.setattr(leader_isr_sweep, "EXAMINED_SLICE", 5)
    examined: list[int] = []

    def noting(*arguments: object) -> PartitionChangeRecord | None:
        examined[-1] += 1
        return partition_change(*arguments)  # type: ignore[arg-type]

    cluster.ask(cluster.heartbeat(2, want_fence=True))
    cluster.settle()
    cluster.create("waiting", *[(1, 2)] * 17)
    cluster.create("others", *[(1, 3)] * 8)
    cluster.ask(cluster.heartbeat(2))
    cluster.settle()
    monkeypatch.setattr(leader_isr_sweep, "partition_change", noting)
    for broker_id, examined_max in ((1, 5), (3, 5)):
        examined.append(0)
        cluster.ask(cluster.heartbeat(broker_id, want_fence=True))
        while not cluster.controller.wake_at_ms:
            examined.append(0)
            decision = cluster.controller.expire(cluster.now_ms)
            if decision is not None:
                cluster.commit(decision)
        assert max(examined) == examined_max
    assert sum(examined) >= 2 * 17
    assert {leader for leader, _ in cluster.leading("waiting")} == {NO_LEADER}
    assert {leader for leader, _ in cluster.leading("others")} == {NO_LEADER}


def test_others_decide_in_between(topics: Cluster, short_slices: int) -> None:
    first = topics.controller.expire(topics.now_ms)
    assert first is not None
    topics.commit(first)
    assert len(first.records) == 1 + short_slices
    created = topics.create("new", (2, 3))
    topics.ask(DeleteTopics(("large", "small-0")))
    topics.settle()
    assert created in topics.image.topics.by_id
    assert_settled(topics.image)


@pytest.mark.usefixtures("short_slices")
def test_a_broker_that_goes_while_others_are_settled_is_settled_by_another_pass(
    topics: Cluster,
) -> None:
    first = topics.controller.expire(topics.now_ms)
    assert first is not None
    topics.commit(first)
    # What lies before the cursor is led by 2 by now.
    topics.ask(UnregisterBroker(2))
    topics.settle()
    assert_settled(topics.image)
    led = {leader for leader, _ in topics.leading("large")}
    assert led == {-1}


@pytest.mark.usefixtures("short_slices")
def test_a_new_controller_finds_what_the_last_one_left(topics: Cluster) -> None:
    first = topics.controller.expire(topics.now_ms)
    assert first is not None
    topics.commit(first)
    controller = topics.controller
    controller.deactivate()
    topics.commit(controller.activate(Epoch(2), controller.end_offset, topics.now_ms))
    # No broker is unfenced before everything was looked at.
    assert topics.ask(topics.heartbeat(1)).is_fenced
    topics.settle()
    assert_settled(topics.image)
    assert topics.image.brokers.active == {2, 3}
    assert not topics.ask(topics.heartbeat(1)).is_fenced
    topics.settle()
    assert_settled(topics.image)


def test_whatever_comes_and_goes_in_between_everything_is_settled_in_the_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = secrets.randbits(32)
    sys.stdout.write(f"to repeat it, set seed = {seed}\n")
    draw = random.Random(seed)
    monkeypatch.setattr(leader_isr_sweep, "RECORDS_SLICE", draw.randint(1, 6))
    monkeypatch.setattr(leader_isr_sweep, "EXAMINED_SLICE", draw.randint(1, 6))
    monkeypatch.setattr(leader_isr_sweep, "CELLS_SLICE", draw.randint(1, 200))
    monkeypatch.setattr(tree, "ROWS_MAX", draw.randint(1, 12))
    cluster.start_brokers(4, 5, 6)
    ids = [1, 2, 3, 4, 5, 6]
    for number in range(15):
        count = draw.choice([1, 2, 9])
        cluster.create(f"t{number}", *[tuple(draw.sample(ids, 3)) for _ in range(count)])
    for _ in range(120):
        broker_id = draw.choice(ids)
        match draw.randint(0, 9):
            case 0:
                cluster.ask(cluster.heartbeat(broker_id, want_fence=True))
            case 1:
                cluster.ask(cluster.heartbeat(broker_id, want_shut_down=True))
            case 2:
                incarnation = draw.choice([uuid(broker_id), draw.randbytes(16)])
                disks = draw.choice([(5,), (6,), (5, 6)])
                log_dirs = tuple([uuid(disk * 100 + broker_id) for disk in disks])
                cluster.ask(
                    cluster.registration(broker_id, incarnation_id=incarnation, log_dirs=log_dirs)
                )
            case 3:
                cluster.now_ms += 4000
            case 4 | 5:
                for one in ids:
                    cluster.ask(cluster.heartbeat(one))
            case _:
                decision = cluster.controller.expire(cluster.now_ms)
                if decision is not None:
                    cluster.commit(decision)
    cluster.settle()
    assert_settled(cluster.image)
    assert cluster.controller.wake_at_ms != 0


OTHER_DISK = DirectoryId(uuid(777))


def create_alone_and_both(cluster: Cluster) -> DirectoryId:
    """A topic on broker 1, another one on 1 and 2; the disk of 1."""
    cluster.create("alone", (1,))
    cluster.create("both", (1, 2))
    return cluster.partition("alone").directories[0]


def leading(cluster: Cluster) -> list[tuple[int, tuple[int, ...]]]:
    cluster.settle()
    return [*cluster.leading("alone"), *cluster.leading("both")]


def restart(cluster: Cluster, *log_dirs: bytes) -> None:
    """Broker 1 is back with these disks."""
    cluster.ask(cluster.heartbeat(1, want_shut_down=True, want_fence=True))
    assert leading(cluster) == [(NO_LEADER, (1,)), (2, (2,))]
    cluster.start_brokers(1, incarnation_id=secrets.token_bytes(16), log_dirs=log_dirs)


def test_a_broker_that_is_back_with_an_empty_disk_leads_nothing_from_it(cluster: Cluster) -> None:
    old = create_alone_and_both(cluster)
    restart(cluster, OTHER_DISK)
    assert leading(cluster) == [(NO_LEADER, (1,)), (2, (2,))]
    restart(cluster, OTHER_DISK, old)
    assert leading(cluster) == [(1, (1,)), (2, (2,))]


def test_a_broker_that_registers_again_leads_from_the_disks_that_it_names(
    cluster: Cluster,
) -> None:
    old = create_alone_and_both(cluster)
    assert not cluster.ask(cluster.registration(1, log_dirs=(OTHER_DISK,))).message
    assert leading(cluster) == [(NO_LEADER, (1,)), (2, (1, 2))]
    cluster.ask(cluster.registration(1, log_dirs=(OTHER_DISK, old)))
    assert leading(cluster) == [(1, (1,)), (2, (1, 2))]
    # With the same ones again there is nothing to look at.
    cluster.ask(cluster.registration(1, log_dirs=(old, OTHER_DISK)))
    assert cluster.controller.wake_at_ms != 0


def test_below_the_level_of_directories_none_is_offline(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(level=16)
    cluster.start_brokers(1, 2)
    create_alone_and_both(cluster)
    restart(cluster, OTHER_DISK)
    assert leading(cluster) == [(1, (1,)), (2, (2,))]


def test_what_a_controller_left_that_did_not_look_at_directories_is_found(
    cluster: Cluster,
) -> None:
    create_alone_and_both(cluster)
    epoch = cluster.image.brokers.by_id[1].registration.broker_epoch
    cluster.write(
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, log_dirs=(OTHER_DISK,))
    )
    assert leading(cluster) == [(NO_LEADER, (1,)), (2, (1, 2))]


def test_a_pass_does_not_keep_the_topics_that_were_there_when_it_began(topics: Cluster) -> None:
    """They would be freed together at its end, and may be all that there are."""
    image = topics.image
    held = (image, image.topics, image.topics.by_id, image.topics.partitions)
    before = list(map(sys.getrefcount, held))
    settling_ = leader_isr_sweep.LeaderIsrSweep(later=frozenset({1})).restarted(image)
    assert list(map(sys.getrefcount, held)) == before
    assert settling_.cursor is not None


def test_a_pass_does_not_go_on_to_what_was_made_since_it_began(topics: Cluster) -> None:
    """Those who make topics all the time would never let it end."""
    begun = leader_isr_sweep.LeaderIsrSweep(later=frozenset({1})).restarted(topics.image)
    topics.create("new", (2, 3))
    assert begun.cursor is not None
    new = topics.image.topics.by_name_or_none("new")
    assert new is not None
    assert begun.cursor.end == key_of(new.number, 0)
