"""What is elected for many partitions at once is what is elected for each of them alone."""

from __future__ import annotations

import random
import secrets
from dataclasses import replace

import numpy as np
import pytest
from immutables import Map

from quorate.controller.configs.image import Configs
from quorate.controller.elections import change_of, needs_look
from quorate.controller.image import MetadataDelta, MetadataImage
from quorate.controller.mass_elections import COMPARED_MAX, elect, rows_max
from quorate.controller.partition_records import changed
from quorate.controller.partition_rows import PARTITION_ID_MAX, PartitionRows, key_of
from quorate.controller.partition_store import PartitionStore
from quorate.controller.partitions import NO_LEADER, UNASSIGNED_DIR, Partition
from quorate.controller.topics.image import Topic, Topics
from quorate.records.ids import TopicId
from quorate.records.metadata import PartitionChangeRecord, decode_record

BROKERS = range(1, 8)


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16))


def any_partition(draw: random.Random) -> Partition:
    """As brokers could leave one, or as nobody should."""
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
        directories=(UNASSIGNED_DIR,) * len(replicas),
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
    image: MetadataImage, keys: list[int], active: frozenset[int]
) -> dict[int, PartitionChangeRecord]:
    topics = {topic.number: topic for topic in image.topics.by_id.values()}
    found = {
        key: change_of(image, topics[key // key_of(1, 0)], key & PARTITION_ID_MAX, active)
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
        active = frozenset(draw.sample(BROKERS, draw.randint(0, len(BROKERS))))
        rows = rows_of(image)
        rows = rows.taken(np.flatnonzero(needs_look(active)(rows)))
        elected, alone = elect(rows, active, level)
        found = one_by_one(image, rows.keys[alone].tolist(), active)
        if elected is not None:
            records = [decode_record(value)[0] for value in elected.values]
            found |= dict(zip(elected.old.keys.tolist(), records, strict=True))
            together += len(records)
            before, after = dict(elected.old.partitions()), dict(elected.new.partitions())
            for (key, old), record in zip(before.items(), records, strict=True):
                assert isinstance(record, PartitionChangeRecord)
                assert after[key] == changed(old, record), f"seed {seed}"
        assert found == one_by_one(image, rows.keys.tolist(), active), f"seed {seed}"
    assert together > 20, f"seed {seed}"


def test_what_was_elected_is_worked_into_an_image() -> None:
    draw = random.Random(7)
    image, active = image_of(draw, 30), frozenset({1, 2, 3})
    elected, _ = elect(rows_of(image), active, 30)
    assert elected is not None
    delta = MetadataDelta(image)
    elected.replay(delta)
    after = delta.apply(image.position)
    expected = dict(rows_of(image).partitions()) | dict(elected.new.partitions())
    assert dict(rows_of(after).partitions()) == expected
    before, now = rows_of(image).standing(), rows_of(after).standing()
    tally = after.topics.tally
    assert (tally.offline, tally.imbalanced) == (now[0] - before[0], now[1] - before[1])


def test_leaderships_that_are_taken_away_are_told() -> None:
    partition = Partition(replicas=(1, 2), isr=(1, 2), leader=1, directories=(UNASSIGNED_DIR,) * 2)
    followed = replace(partition, replicas=(2, 1), leader=2)
    rows = PartitionRows.made([(0, topic_id(0), followed), (1, topic_id(0), followed)])
    elected, alone = elect(rows, frozenset({2}), 30)
    assert elected is not None
    assert not len(alone)
    assert not elected.takes_from(1)
    rows = PartitionRows.made([(0, topic_id(0), followed), (1, topic_id(0), partition)])
    elected, _ = elect(rows, frozenset({2}), 30)
    assert elected is not None
    assert elected.takes_from(1)
    assert not elected.takes_from(2)


def test_rows_without_a_change_give_nothing() -> None:
    partition = Partition(replicas=(1,), isr=(1,), leader=1, directories=(UNASSIGNED_DIR,))
    rows = PartitionRows.made([(0, topic_id(0), partition)])
    elected, alone = elect(rows, frozenset({1}), 30)
    assert elected is None
    assert not len(alone)
    assert elect(PartitionRows.made([]), frozenset({1}), 30)[0] is None


def test_wide_rows_are_few_at_a_time() -> None:
    assert [rows_max(width) for width in (0, 3, 1000, 10_000)] == [
        COMPARED_MAX,
        COMPARED_MAX // 9,
        1,
        1,
    ]
