from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from immutables import Map

from quorate.controller.brokers.image import Brokers
from quorate.controller.configs.image import Configs
from quorate.controller.image import MetadataImage
from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.leader_election import needs_election, partition_change
from quorate.controller.partitions.partition import (
    LOST_DIR,
    MIGRATING_DIR,
    RECOVERING,
    UNASSIGNED_DIR,
    Partition,
)
from quorate.controller.partitions.rows import PartitionRows, key_of
from quorate.controller.partitions.store import PartitionStore
from quorate.controller.topics.image import Topic, Topics
from quorate.records.ids import DirectoryId, TopicId
from quorate.records.metadata import PartitionChangeRecord
from tests.unit.controller.brokers.test_image import broker

NO_BROKERS = Brokers()
# A disk of each of the brokers 1 to 3, and one that none of them has.
ONE, TWO, THREE, GONE = (DirectoryId(bytes([number]) * 16) for number in (1, 2, 3, 9))
WITH_DISKS = NO_BROKERS
for _id, _disk in ((1, ONE), (2, TWO), (3, THREE)):
    WITH_DISKS = WITH_DISKS.with_broker(broker(_id, log_dirs=(_disk,)))
UNCLEAN = "unclean.leader.election.enable"


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"-"))


def partition(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    directories: tuple[DirectoryId, ...] | None = None,
) -> Partition:
    return Partition(
        replicas=replicas,
        isr=isr,
        leader=leader,
        directories=directories or (UNASSIGNED_DIR,) * len(replicas),
        eligible_leader_replicas=elr,
        last_known_elr=last_known,
    )


def image_of(
    level: int = 30,
    configs: dict[tuple[int, str], str] | None = None,
    brokers: Brokers = NO_BROKERS,
    **topics: list[Partition],
) -> MetadataImage:
    made = {
        topic_id(name): Topic(name, topic_id(name), number) for number, name in enumerate(topics)
    }
    entries = [
        (key_of(number, partition_id), topic_id(name), partition)
        for number, (name, partitions) in enumerate(topics.items())
        for partition_id, partition in enumerate(partitions)
    ]
    return MetadataImage(
        features=Map({"metadata.version": level}),
        brokers=brokers,
        topics=Topics(
            Map(made),
            Map({topic.name: id_ for id_, topic in made.items()}),
            partitions=PartitionStore().with_rows(PartitionRows.made(entries)),
        ),
        configs=Configs(Map({key: Map({UNCLEAN: v}) for key, v in (configs or {}).items()})),
    )


def change(name: str, partition_id: int, **fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic_id(name),
        **fields,  # type: ignore[arg-type]
    )


def changes(image: MetadataImage, *active: int) -> list[PartitionChangeRecord]:
    """The changes that are needed when these may lead, by topic and partition."""
    acceptor = LeaderAcceptor(image.brokers, frozenset(active))
    found = [
        partition_change(image, image.topics.by_id[id_], partition_id, acceptor)
        for id_, partition_id in looked_at(image, *active)
    ]
    return [record for record in found if record is not None]


def looked_at(image: MetadataImage, *active: int) -> list[tuple[TopicId, int]]:
    """The partitions that are looked at one by one when these may lead."""
    rows = image.topics.partitions.rows.rows_from(0, 10_000)
    if rows is None:
        return []
    found = np.flatnonzero(needs_election(rows, LeaderAcceptor(image.brokers, frozenset(active))))
    return list(zip(rows.topics_at(found), rows.partition_ids[found].tolist(), strict=True))


def test_the_next_replica_in_sync_takes_over() -> None:
    image = image_of(a=[partition((3, 1, 2), (2, 1, 3), 3)])
    assert changes(image, 1, 2) == [change("a", 0, leader=1, isr=(2, 1))]


def test_a_follower_leaves_the_isr_and_the_leader_stays() -> None:
    image = image_of(a=[partition((1, 2), (1, 2), 1)])
    assert changes(image, 1) == [change("a", 0, isr=(1,))]


def test_before_3_6_a_smaller_isr_needs_a_new_leader_epoch() -> None:
    image = image_of(11, a=[partition((1, 2), (1, 2), 1)])
    assert changes(image, 1) == [change("a", 0, isr=(1,), leader=1)]


def test_the_last_replica_in_sync_stays_in_sync_without_leading() -> None:
    image = image_of(a=[partition((1, 2), (1,), 1)])
    gone = changes(image, 2)
    assert gone == [change("a", 0, leader=-1)]
    waiting = image_of(a=[partition((1, 2), (1,), -1)])
    assert changes(waiting, 2) == []
    assert changes(waiting, 1, 2) == [change("a", 0, leader=1)]


def test_partitions_without_that_broker_are_left_alone() -> None:
    image = image_of(a=[partition((2, 3), (2, 3), 2)], b=[partition((1, 2), (2,), 2)])
    assert changes(image, 2, 3) == []
    assert changes(image, 1, 2, 3) == []


def test_a_broker_that_is_back_does_not_lead_what_it_is_not_in_sync_for() -> None:
    image = image_of(a=[partition((1, 2), (1,), -1)])
    assert changes(image, 2) == []


ELR_ON = Map({"metadata.version": 30, "eligible.leader.replicas.version": 1})


@pytest.mark.parametrize(
    ("features", "minimum", "left"),
    [
        (ELR_ON, "2", (1,)),
        # One in sync is enough for a write, which the others lack then.
        (ELR_ON, "1", ()),
        (Map({"metadata.version": 30}), "2", ()),
    ],
)
def test_an_eligible_replica_leads_alone_and_others_stay_eligible_while_it_commits_nothing(
    features: Map[str, int], minimum: str, left: tuple[int, ...]
) -> None:
    image = image_of(a=[partition((1, 2, 3), (), -1, elr=(1, 3), last_known=(2,))])
    configs = Configs(Map({(2, "a"): Map({"min.insync.replicas": minimum})}))
    image = replace(image, features=features, configs=configs)
    assert changes(image, 3) == [
        change("a", 0, leader=3, isr=(3,), eligible_leader_replicas=left, last_known_elr=())
    ]


def test_the_leader_that_was_known_last_leads_again_where_no_other_replica_may() -> None:
    gone = partition((1, 2, 3), (), -1, last_known=(2,))
    two = partition((1, 2, 3), (), -1, last_known=(2, 3))
    image = image_of(a=[gone, two])
    assert changes(image, 3) == []
    assert changes(image, 2, 3) == [
        change("a", 0, leader=2, isr=(2,), leader_recovery_state=RECOVERING, last_known_elr=())
    ]


def test_below_the_level_of_elr_no_record_mentions_it() -> None:
    image = image_of(22, a=[partition((1, 2), (), -1, elr=(1,))])
    assert changes(image, 1) == [change("a", 0, leader=1, isr=(1,))]


@pytest.mark.parametrize(
    ("configs", "is_unclean"),
    [
        ({}, False),
        ({(2, "a"): "true"}, True),
        ({(4, ""): "TRUE"}, True),
        ({(4, ""): "true", (2, "a"): "false"}, False),
    ],
)
def test_a_replica_out_of_sync_leads_only_where_data_may_be_lost(
    configs: dict[tuple[int, str], str], *, is_unclean: bool
) -> None:
    image = image_of(configs=configs, a=[partition((1, 2, 3), (1,), -1, last_known=(1,))])
    expected = change(
        "a", 0, leader=3, isr=(3,), leader_recovery_state=RECOVERING, last_known_elr=()
    )
    assert changes(image, 3) == ([expected] if is_unclean else [])


def test_a_replica_in_sync_that_is_no_replica_may_lead_what_a_strange_log_left() -> None:
    image = image_of(a=[partition((1,), (1, 9), 1)])
    assert changes(image, 9) == [change("a", 0, leader=9, isr=(9,))]


def test_what_a_predecessor_left_undone_is_found() -> None:
    image = image_of(
        a=[
            partition((1, 2), (1, 2), 2),
            partition((2, 1), (2,), 2),
            partition((2, 1), (2, 1), 1),
            partition((1, 2), (1,), 1),
        ],
        b=[partition((1, 2), (1,), -1), partition((2,), (2,), -1)],
    )
    assert changes(image, 1) == [
        change("a", 0, leader=1, isr=(1,)),
        change("a", 1, leader=-1),
        change("a", 2, isr=(1,)),
        change("b", 0, leader=1),
    ]


def test_nobody_looks_at_partitions_that_are_as_they_should_be() -> None:
    image = image_of(
        a=[
            partition((1, 2), (1, 2), 1),
            partition((1, 2), (1,), 1),
            partition((3, 4), (3, 4), -1),
            partition((1, 2), (3, 4), -1),
        ]
    )
    assert [number for _, number in looked_at(image, 1, 2)] == [3]
    assert [number for _, number in looked_at(image, 1)] == [0, 3]
    assert [number for _, number in looked_at(image, 2, 3)] == [0, 1, 2, 3]
    none_active = LeaderAcceptor(image.brokers, frozenset())
    assert partition_change(image, image.topics.by_id[topic_id("a")], 9, none_active) is None


# --- directories ----------------------------------------------------------------------------------


def in_disks(
    first: DirectoryId,
    isr: tuple[int, ...],
    leader: int,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
) -> Partition:
    """A partition whose replicas on 2 and 3 are online, and that on 1 in that directory."""
    return partition((1, 2, 3), isr, leader, elr, last_known, (first, TWO, THREE))


@pytest.mark.parametrize(
    "directory", [ONE, MIGRATING_DIR, UNASSIGNED_DIR], ids=["known", "migrating", "unassigned"]
)
def test_a_replica_whose_directory_is_online_leads(directory: DirectoryId) -> None:
    image = image_of(a=[in_disks(directory, (1,), -1)], brokers=WITH_DISKS)
    assert changes(image, 1, 2, 3) == [change("a", 0, leader=1)]


OFFLINE = pytest.mark.parametrize(
    "directory", [GONE, TWO, LOST_DIR], ids=["unknown", "of another broker", "lost"]
)


@OFFLINE
def test_a_replica_whose_directory_is_offline_does_not_lead(directory: DirectoryId) -> None:
    image = image_of(
        brokers=WITH_DISKS,
        configs={(2, "c"): "true"},
        a=[in_disks(directory, (1,), -1), in_disks(directory, (1, 2), -1)],
        # Neither because it is eligible, nor because data may be lost.
        b=[in_disks(directory, (), -1, elr=(1,)), in_disks(directory, (), -1, last_known=(1,))],
        c=[in_disks(directory, (3,), -1)],
    )
    assert changes(image, 1) == []
    found = changes(image, 1, 2)
    unclean = change("c", 0, leader=2, isr=(2,), leader_recovery_state=RECOVERING)
    assert found == [change("a", 1, leader=2), unclean]


@OFFLINE
def test_a_leader_whose_directory_is_offline_leads_no_more(directory: DirectoryId) -> None:
    image = image_of(
        a=[in_disks(directory, (1, 2), 1), in_disks(directory, (1,), 1)], brokers=WITH_DISKS
    )
    # It stays in sync: what it lacks its next leader will find.
    assert changes(image, 1, 2, 3) == [change("a", 0, leader=2), change("a", 1, leader=-1)]


def test_the_isr_keeps_the_replica_that_will_lead_again() -> None:
    """It has all that was committed, and another one that stays has no directory."""
    image = image_of(a=[in_disks(GONE, (1, 2), 2)], brokers=WITH_DISKS)
    assert changes(image, 1, 3) == [change("a", 0, leader=-1)]
    waiting = image_of(a=[in_disks(GONE, (1, 2), -1)], brokers=WITH_DISKS)
    assert changes(waiting, 1, 3) == []
    assert changes(waiting, 1, 2, 3) == [change("a", 0, leader=2)]


def test_every_directory_but_a_lost_one_is_online_where_the_broker_told_none() -> None:
    image = image_of(
        a=[in_disks(GONE, (1,), -1), in_disks(LOST_DIR, (1,), -1)],
        brokers=NO_BROKERS.with_broker(broker(1)),
    )
    assert changes(image, 1) == [change("a", 0, leader=1)]
