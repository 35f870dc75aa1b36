"""A bulk election of many partitions elects the same as an election of each of them alone."""

from __future__ import annotations

import random
import secrets
from dataclasses import replace

import numpy as np
import pytest
from immutables import Map

from quorate.controller.brokers.image import Brokers
from quorate.controller.configs.image import Configs
from quorate.controller.image import MetadataDelta, MetadataImage
from quorate.controller.partitions.bulk_leader_election import (
    COMPARED_MAX,
    elect,
    elect_preferred,
    rows_max,
)
from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.leader_election import (
    choose_preferred,
    needs_election,
    partition_change,
)
from quorate.controller.partitions.partition import (
    LOST_DIR,
    MIGRATING_DIR,
    NO_LEADER,
    UNASSIGNED_DIR,
    Partition,
)
from quorate.controller.partitions.records import changed
from quorate.controller.partitions.rows import PARTITION_ID_MAX, PartitionRows, key_of
from quorate.controller.partitions.store import PartitionStore
from quorate.controller.topics.image import Topic, Topics
from quorate.records.ids import DirectoryId, TopicId
from quorate.records.metadata import PartitionChangeRecord, decode_record
from tests.unit.controller.brokers.test_image import broker

BROKERS = range(1, 8)
RESERVED = (MIGRATING_DIR, UNASSIGNED_DIR, LOST_DIR)


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16))


def disk(broker_id: int, number: int = 0) -> DirectoryId:
    return DirectoryId(bytes([broker_id, number]) * 8)


def any_directory(draw: random.Random, broker_id: int) -> DirectoryId:
    """One of the disks of the broker, mostly, or a reserved id, or the disk of another broker."""
    match draw.randint(0, 9):
        case 0:
            return draw.choice(RESERVED)
        case 1:
            return disk(draw.choice(BROKERS))
        case _:
            return disk(broker_id, draw.randint(0, 1))


def any_brokers(draw: random.Random) -> Brokers:
    """All of them registered, some with a disk less or with no disk told."""
    brokers = Brokers()
    for broker_id in BROKERS:
        disks = (disk(broker_id), disk(broker_id, 1))[: draw.choice([0, 1, 2, 2, 2])]
        # As no controller lets two of them.
        shared = (disk(1),) if broker_id > 1 and disks and draw.random() < 0.1 else ()
        brokers = brokers.with_broker(broker(broker_id, log_dirs=disks + shared))
    return brokers


def acceptor_of(*active: int) -> LeaderAcceptor:
    """The acceptor of brokers that have told no disks."""
    return LeaderAcceptor(Brokers(), frozenset(active))


def any_partition(draw: random.Random) -> Partition:
    """A partition as brokers could leave one, or an invalid one."""
    replicas = tuple(draw.sample(BROKERS, draw.choice([0, 1, 2, 3, 3, 5])))
    isr = tuple(draw.sample(replicas, draw.randint(0, len(replicas))))
    if draw.random() < 0.1:
        isr = tuple(draw.sample(BROKERS, 2))
    has_eligible = draw.random() < 0.2
    return Partition(
        replicas=replicas,
        isr=isr,
        leader=draw.choice([NO_LEADER, *isr, *isr, *isr, *replicas]),
        leader_epoch=draw.choice([0, 7, 2**31 - 1] if draw.random() < 0.02 else [0, 7]),
        directories=tuple([any_directory(draw, replica) for replica in replicas]),
        adding_replicas=(1,) if draw.random() < 0.1 else (),
        eligible_leader_replicas=replicas[:1] if has_eligible else (),
        last_known_elr=replicas[1:] if has_eligible and draw.random() < 0.5 else (),
    )


def image_of(draw: random.Random, level: int) -> MetadataImage:
    topics = {
        topic_id(number): Topic(f"t{number}", topic_id(number), number) for number in range(9)
    }
    entries = [
        (key_of(topic.number, n), id_, any_partition(draw))
        for id_, topic in topics.items()
        for n in range(draw.choice([1, 5, 40]))
    ]
    unclean = Map({"unclean.leader.election.enable": "true"})
    return MetadataImage(
        features=Map({"metadata.version": level}),
        brokers=any_brokers(draw),
        topics=Topics(
            Map(topics),
            Map({topic.name: id_ for id_, topic in topics.items()}),
            partitions=PartitionStore().with_rows(PartitionRows.made(entries)),
        ),
        configs=Configs(Map({(2, "t3"): unclean, (2, "t4"): unclean})),
    )


def rows_of(image: MetadataImage) -> PartitionRows:
    rows = image.topics.partitions.rows.rows_from(0, 1 << 30)
    assert rows is not None
    return rows


def one_by_one(
    image: MetadataImage, keys: list[int], acceptor: LeaderAcceptor
) -> dict[int, PartitionChangeRecord]:
    topics = {topic.number: topic for topic in image.topics.by_id.values()}
    found = {
        key: partition_change(image, topics[key // key_of(1, 0)], key & PARTITION_ID_MAX, acceptor)
        for key in keys
    }
    return {key: record for key, record in found.items() if record is not None}


@pytest.mark.parametrize("level", [7, 11, 16, 22, 23, 30])
def test_many_get_what_each_would_get_alone(level: int) -> None:
    seed = secrets.randbits(32)
    draw = random.Random(seed)
    together = 0
    for _ in range(10):
        image = image_of(draw, level)
        active = draw.sample(BROKERS, draw.randint(0, len(BROKERS)))
        acceptor = LeaderAcceptor(image.brokers, frozenset(active))
        rows = rows_of(image)
        needed = needs_election(rows, acceptor)
        # A leader out of sync is one that only a strange log has.
        is_led = (rows.isr == rows.leaders[:, None]).any(axis=1) | (rows.leaders == NO_LEADER)
        others = rows.keys[np.flatnonzero(~needed & is_led)].tolist()
        assert not one_by_one(image, others, acceptor), f"seed {seed}"
        rows = rows.taken(np.flatnonzero(needed))
        elected, alone = elect(rows, acceptor, level)
        found = one_by_one(image, rows.keys[alone].tolist(), acceptor)
        if elected is not None:
            records = [decode_record(value)[0] for value in elected.values]
            found |= dict(zip(elected.old.keys.tolist(), records, strict=True))
            together += len(records)
            before, after = dict(elected.old.partitions()), dict(elected.new.partitions())
            for (key, old), record in zip(before.items(), records, strict=True):
                assert isinstance(record, PartitionChangeRecord)
                assert after[key] == changed(old, record), f"seed {seed}"
        assert found == one_by_one(image, rows.keys.tolist(), acceptor), f"seed {seed}"
    assert together > 20, f"seed {seed}"


def test_many_get_the_preferred_leaders_that_each_would_get_alone() -> None:
    seed = secrets.randbits(32)
    draw = random.Random(seed)
    found = 0
    for _ in range(10):
        image = image_of(draw, 30)
        active = draw.sample(BROKERS, draw.randint(0, len(BROKERS)))
        acceptor = LeaderAcceptor(image.brokers, frozenset(active))
        rows = rows_of(image)
        elected, _ = elect_preferred(rows, acceptor, 30, len(rows))
        expected = {
            key: partition.replicas[0]
            for (key, partition), is_last in zip(
                rows.partitions(), rows.has_last_epoch.tolist(), strict=True
            )
            if partition.replicas and partition.leader not in (NO_LEADER, partition.replicas[0])
            if choose_preferred(partition, acceptor).leader == partition.replicas[0]
            if partition.replicas[0] in partition.isr and not is_last
        }
        after = {} if elected is None else dict(elected.new.partitions())
        leaders = {key: partition.leader for key, partition in after.items()}
        assert leaders == expected, f"seed {seed}"
        found += len(leaders)
    assert found > 20, f"seed {seed}"


def test_what_was_elected_is_worked_into_an_image() -> None:
    draw = random.Random(7)
    image = image_of(draw, 30)
    acceptor = LeaderAcceptor(image.brokers, frozenset({1, 2, 3}))
    elected, _ = elect(rows_of(image), acceptor, 30)
    assert elected is not None
    delta = MetadataDelta(image)
    elected.replay(delta)
    after = delta.apply(image.position)
    expected = dict(rows_of(image).partitions()) | dict(elected.new.partitions())
    assert dict(rows_of(after).partitions()) == expected
    before, now = (
        rows_of(image).offline_and_imbalanced_counts(),
        rows_of(after).offline_and_imbalanced_counts(),
    )
    tally = after.topics.tally
    assert (tally.offline, tally.imbalanced) == (now[0] - before[0], now[1] - before[1])


def test_leaderships_that_are_taken_away_are_told() -> None:
    partition = Partition(replicas=(1, 2), isr=(1, 2), leader=1, directories=(UNASSIGNED_DIR,) * 2)
    followed = replace(partition, replicas=(2, 1), leader=2)
    rows = PartitionRows.made([(0, topic_id(0), followed), (1, topic_id(0), followed)])
    elected, alone = elect(rows, acceptor_of(2), 30)
    assert elected is not None
    assert not len(alone)
    assert not elected.takes_from(1)
    rows = PartitionRows.made([(0, topic_id(0), followed), (1, topic_id(0), partition)])
    elected, _ = elect(rows, acceptor_of(2), 30)
    assert elected is not None
    assert elected.takes_from(1)
    assert not elected.takes_from(2)


def test_rows_without_a_change_give_nothing() -> None:
    partition = Partition(replicas=(1,), isr=(1,), leader=1, directories=(UNASSIGNED_DIR,))
    rows = PartitionRows.made([(0, topic_id(0), partition)])
    elected, alone = elect(rows, acceptor_of(1), 30)
    assert elected is None
    assert not len(alone)
    assert elect(PartitionRows.made([]), acceptor_of(1), 30)[0] is None


def test_wide_rows_are_few_at_a_time() -> None:
    assert [rows_max(width) for width in (0, 3, 1000, 10_000)] == [
        COMPARED_MAX,
        COMPARED_MAX // 9,
        1,
        1,
    ]
