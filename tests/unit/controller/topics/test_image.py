from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from immutables import Map

from quorate.controller.errors import ReplayError
from quorate.controller.image import LOG_BEGIN, LogPosition, MetadataDelta, MetadataImage
from quorate.controller.partitions import NO_LEADER, UNASSIGNED_DIR, Partition, PartitionTable
from quorate.controller.topics.image import CHUNKS_WAITING_MAX, WAITING_MAX, Topic, Topics
from quorate.records.ids import Epoch, Offset, TopicId

if TYPE_CHECKING:
    from collections.abc import Mapping

THERE = LogPosition(Offset(5), Epoch(1), 3)
TOPIC_ID = TopicId(b"t" * 16)
ONE = Partition(replicas=(1,), isr=(1,), leader=1, directories=(UNASSIGNED_DIR,))


def with_topic(delta: MetadataDelta) -> MetadataDelta:
    delta.topics.by_id[TOPIC_ID] = Topic("a", TOPIC_ID)
    delta.topics.ids["a"] = TOPIC_ID
    return delta


def test_a_topic_is_found_by_its_name() -> None:
    topic = Topic("a", TopicId(b"t" * 16))
    topics = Topics(Map({topic.topic_id: topic}), Map(a=topic.topic_id))
    assert topics.named("a") is topic
    assert topics.named("b") is None


def test_changes_do_not_show_in_the_old_image() -> None:
    image = MetadataImage()
    delta = with_topic(MetadataDelta(image))
    delta.topics.set_partition(TOPIC_ID, 0, ONE, old=None)
    applied = delta.apply(THERE)
    assert image == MetadataImage()
    assert applied == MetadataImage(
        position=THERE,
        topics=Topics(
            Map({TOPIC_ID: Topic("a", TOPIC_ID, PartitionTable().with_changes({0: ONE}))}),
            Map(a=TOPIC_ID),
            partition_count=1,
        ),
    )


def test_a_partition_reads_as_it_was_changed() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    assert delta.topics.partition(TOPIC_ID, 0) is None
    delta.topics.set_partition(TOPIC_ID, 0, ONE, old=None)
    assert delta.topics.partition(TOPIC_ID, 0) == ONE
    again = MetadataDelta(delta.apply(THERE))
    assert again.topics.partition(TOPIC_ID, 0) == ONE


def test_a_topic_that_is_removed_takes_its_partitions_along() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    delta.topics.set_partition(TOPIC_ID, 0, ONE, old=None)
    assert delta.topics.remove(TOPIC_ID).name == "a"
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
        delta.topics.set_partition(TOPIC_ID, partition_id, ONE, old=None)
    assert together == [WAITING_MAX] * 3
    assert delta.topics.partition(TOPIC_ID, 0) == ONE
    applied = delta.apply(THERE)
    assert together[3:] == [1]
    assert (
        len(applied.topics.by_id[TOPIC_ID].partitions)
        == applied.topics.partition_count
        == sum(together)
    )


def test_an_unknown_topic_is_an_error() -> None:
    delta = MetadataDelta(MetadataImage())
    with pytest.raises(ReplayError, match="no topic has the id 7474"):
        delta.topics.partition(TOPIC_ID, 0)


def recount(image: MetadataImage) -> tuple[int, int]:
    """How many partitions are offline and imbalanced, looked at one by one."""
    every = [p for topic in image.topics.by_id.values() for _, p in topic.partitions.items()]
    return sum(p.is_offline for p in every), sum(p.is_imbalanced for p in every)


def test_partitions_without_leader_and_with_another_are_counted_as_they_change() -> None:
    seed = random.SystemRandom().randrange(2**32)
    draw = random.Random(seed)
    image = MetadataImage()
    seen = set()
    for step in range(60):
        delta = MetadataDelta(image)
        if not image.topics.by_id or draw.random() < 0.2:
            topic_id = TopicId(draw.randbytes(16))
            delta.topics.by_id[topic_id] = Topic(str(step), topic_id)
            delta.topics.ids[str(step)] = topic_id
        elif draw.random() < 0.2:
            delta.topics.remove(draw.choice([*image.topics.by_id]))
        for topic_id in [*delta.topics.topic_id_list()]:
            for _ in range(draw.randrange(4)):
                partition_id = draw.choice((0, 1, 2, 1500))
                replicas = tuple(draw.sample(range(1, 5), draw.randint(1, 3)))
                partition = Partition(
                    replicas=replicas,
                    isr=replicas[:1],
                    leader=draw.choice((*replicas, NO_LEADER)),
                    directories=(UNASSIGNED_DIR,) * len(replicas),
                )
                old = delta.topics.partition(topic_id, partition_id)
                delta.topics.set_partition(topic_id, partition_id, partition, old=old)
        image = delta.apply(THERE)
        counted = (image.topics.tally.offline, image.topics.tally.imbalanced)
        assert counted == recount(image), f"seed {seed}, step {step}"
        seen.add(counted)
        assert image.at(LOG_BEGIN).topics.tally == image.topics.tally
    assert len(seen) > 5, f"seed {seed}"


def test_few_chunks_of_many_tables_are_copied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is copied whole, so that 128 changes in as many of them would take 70 ms."""
    delta = MetadataDelta(MetadataImage())
    ids = [TopicId(number.to_bytes(16)) for number in range(WAITING_MAX)]
    for topic_id in ids:
        delta.topics.by_id[topic_id] = Topic(str(topic_id), topic_id)
    copied = [0]
    with_changes = PartitionTable.with_changes

    def counting(table: PartitionTable, changes: Mapping[int, Partition]) -> PartitionTable:
        copied[-1] += 1
        return with_changes(table, changes)

    monkeypatch.setattr(PartitionTable, "with_changes", counting)
    for topic_id in ids:
        copied.append(0)
        delta.topics.set_partition(topic_id, 0, ONE, old=None)
    copied.append(0)
    assert delta.apply(THERE).topics.partition_count == WAITING_MAX
    assert max(copied) == CHUNKS_WAITING_MAX
    assert sum(copied) == WAITING_MAX


def test_an_image_counts_what_only_earlier_ones_hold() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    delta.topics.set_partition(TOPIC_ID, 0, ONE, old=None)
    delta.configs.set((2, "a"), "k", "v")
    first = delta.apply(THERE)
    again = MetadataDelta(first)
    again.topics.set_partition(TOPIC_ID, 0, ONE, old=ONE)
    second = again.apply(THERE)
    assert second.replaced == first.replaced + 1
    removal = MetadataDelta(second)
    removal.topics.remove(TOPIC_ID)
    assert removal.apply(THERE).replaced == second.replaced + 1
    assert MetadataDelta(second).apply(THERE).replaced == second.replaced
