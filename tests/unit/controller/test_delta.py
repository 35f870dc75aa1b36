from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from immutables import Map

from quorate.controller.delta import CHUNKS_WAITING_MAX, WAITING_MAX, MetadataDelta
from quorate.controller.errors import ReplayError
from quorate.controller.image import LOG_BEGIN, Brokers, LogPosition, MetadataImage, Topic
from quorate.controller.partitions import NO_LEADER, UNASSIGNED_DIR, Partition, PartitionTable
from quorate.records.ids import Epoch, Offset, TopicId
from quorate.records.metadata import UnknownRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

THERE = LogPosition(Offset(5), Epoch(1), 3)
TOPIC_ID = TopicId(b"t" * 16)
ONE = Partition(replicas=(1,), isr=(1,), leader=1, directories=(UNASSIGNED_DIR,))


def with_topic(delta: MetadataDelta) -> MetadataDelta:
    delta.topics[TOPIC_ID] = Topic("a", TOPIC_ID)
    delta.topic_ids["a"] = TOPIC_ID
    return delta


def test_without_changes_the_image_is_the_same_further_on() -> None:
    image = MetadataImage(
        features=Map(a=1), brokers=Brokers(), unknown=(UnknownRecord(99, 0, b""),)
    )
    applied = MetadataDelta(image).apply(THERE)
    assert applied == image.at(THERE)
    assert applied.brokers is image.brokers
    assert applied.unknown is image.unknown


def test_changes_do_not_show_in_the_old_image() -> None:
    image = MetadataImage()
    delta = with_topic(MetadataDelta(image))
    delta.set_partition(TOPIC_ID, 0, ONE, old=None)
    delta.features["a"] = 1
    applied = delta.apply(THERE)
    assert image == MetadataImage()
    assert applied == MetadataImage(
        position=THERE,
        features=Map(a=1),
        topics=Map({TOPIC_ID: Topic("a", TOPIC_ID, PartitionTable().with_changes({0: ONE}))}),
        topic_ids=Map(a=TOPIC_ID),
        partition_count=1,
    )


def test_a_partition_reads_as_it_was_changed() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    assert delta.partition(TOPIC_ID, 0) is None
    delta.set_partition(TOPIC_ID, 0, ONE, old=None)
    assert delta.partition(TOPIC_ID, 0) == ONE
    again = MetadataDelta(delta.apply(THERE))
    assert again.partition(TOPIC_ID, 0) == ONE


def test_a_topic_that_is_removed_takes_its_partitions_along() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    delta.set_partition(TOPIC_ID, 0, ONE, old=None)
    assert delta.remove_topic(TOPIC_ID).name == "a"
    assert delta.apply(THERE) == MetadataImage(position=THERE)


def test_changed_partitions_do_not_wait_for_the_end_of_a_large_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together: list[int] = []
    with_changes = PartitionTable.with_changes

    def noting(table: PartitionTable, changes: Mapping[int, Partition]) -> PartitionTable:
        together.append(len(changes))
        return with_changes(table, changes)

    monkeypatch.setattr(PartitionTable, "with_changes", noting)
    delta = with_topic(MetadataDelta(MetadataImage()))
    for partition_id in range(3 * WAITING_MAX + 1):
        delta.set_partition(TOPIC_ID, partition_id, ONE, old=None)
    assert together == [WAITING_MAX] * 3
    assert delta.partition(TOPIC_ID, 0) == ONE
    applied = delta.apply(THERE)
    assert together[3:] == [1]
    assert len(applied.topics[TOPIC_ID].partitions) == applied.partition_count == sum(together)


def test_an_unknown_topic_is_an_error() -> None:
    delta = MetadataDelta(MetadataImage())
    with pytest.raises(ReplayError, match="no topic has the id 7474"):
        delta.partition(TOPIC_ID, 0)


def test_a_resource_without_any_config_left_is_gone() -> None:
    delta = MetadataDelta(MetadataImage())
    key = (2, "a")
    delta.set_config(key, "x", None)
    delta.set_config(key, "x", "1")
    delta.set_config(key, "y", "2")
    delta.set_config(key, "x", None)
    image = delta.apply(THERE)
    expected: Map[tuple[int, str], Map[str, str]] = Map([(key, Map(y="2"))])
    assert image.configs == expected
    delta = MetadataDelta(image)
    delta.set_config(key, "y", None)
    assert delta.apply(THERE).configs == Map()


def recount(image: MetadataImage) -> tuple[int, int]:
    """How many partitions are offline and imbalanced, looked at one by one."""
    every = [p for topic in image.topics.values() for _, p in topic.partitions.items()]
    return sum(p.is_offline for p in every), sum(p.is_imbalanced for p in every)


def test_partitions_without_leader_and_with_another_are_counted_as_they_change() -> None:
    seed = random.SystemRandom().randrange(2**32)
    draw = random.Random(seed)
    image = MetadataImage()
    seen = set()
    for step in range(60):
        delta = MetadataDelta(image)
        if not image.topics or draw.random() < 0.2:
            topic_id = TopicId(draw.randbytes(16))
            delta.topics[topic_id] = Topic(str(step), topic_id)
            delta.topic_ids[str(step)] = topic_id
        elif draw.random() < 0.2:
            delta.remove_topic(draw.choice([*image.topics]))
        for topic_id in [*delta.topic_id_list()]:
            for _ in range(draw.randrange(4)):
                partition_id = draw.choice((0, 1, 2, 1500))
                replicas = tuple(draw.sample(range(1, 5), draw.randint(1, 3)))
                partition = Partition(
                    replicas=replicas,
                    isr=replicas[:1],
                    leader=draw.choice((*replicas, NO_LEADER)),
                    directories=(UNASSIGNED_DIR,) * len(replicas),
                )
                old = delta.partition(topic_id, partition_id)
                delta.set_partition(topic_id, partition_id, partition, old=old)
        image = delta.apply(THERE)
        counted = (image.tally.offline, image.tally.imbalanced)
        assert counted == recount(image), f"seed {seed}, step {step}"
        seen.add(counted)
        assert image.at(LOG_BEGIN).tally == image.tally
    assert len(seen) > 5, f"seed {seed}"


def test_few_chunks_of_many_tables_are_copied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is copied whole, so that 128 changes in as many of them would take 70 ms."""
    delta = MetadataDelta(MetadataImage())
    ids = [TopicId(number.to_bytes(16)) for number in range(WAITING_MAX)]
    for topic_id in ids:
        delta.topics[topic_id] = Topic(str(topic_id), topic_id)
    copied = [0]
    with_changes = PartitionTable.with_changes

    def counting(table: PartitionTable, changes: Mapping[int, Partition]) -> PartitionTable:
        copied[-1] += 1
        return with_changes(table, changes)

    monkeypatch.setattr(PartitionTable, "with_changes", counting)
    for topic_id in ids:
        copied.append(0)
        delta.set_partition(topic_id, 0, ONE, old=None)
    copied.append(0)
    assert delta.apply(THERE).partition_count == WAITING_MAX
    assert max(copied) == CHUNKS_WAITING_MAX
    assert sum(copied) == WAITING_MAX


def test_an_image_counts_what_only_earlier_ones_hold() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    delta.set_partition(TOPIC_ID, 0, ONE, old=None)
    delta.set_config((2, "a"), "k", "v")
    first = delta.apply(THERE)
    again = MetadataDelta(first)
    again.set_partition(TOPIC_ID, 0, ONE, old=ONE)
    second = again.apply(THERE)
    assert second.tally.replaced == first.tally.replaced + 1
    removal = MetadataDelta(second)
    removal.remove_topic(TOPIC_ID)
    assert removal.apply(THERE).tally.replaced == second.tally.replaced + 1
    assert MetadataDelta(second).apply(THERE).tally.replaced == second.tally.replaced
