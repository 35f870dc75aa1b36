from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from immutables import Map

from quorate.controller.errors import ReplayError
from quorate.controller.image import LOG_BEGIN, LogPosition, MetadataDelta, MetadataImage
from quorate.controller.partitions.partition import NO_LEADER, UNASSIGNED_DIR, Partition
from quorate.controller.partitions.rows import PartitionRows
from quorate.controller.partitions.store import PartitionStore
from quorate.controller.partitions.tree import ROWS_MAX
from quorate.controller.slices import run_to_end
from quorate.controller.topics.image import PARTS_SLICE, WAITING_MAX, Topic, Topics
from quorate.records.ids import Epoch, Offset, TopicId

if TYPE_CHECKING:
    from quorate.controller.partitions.store import Late

THERE = LogPosition(Offset(5), Epoch(1), 3)
TOPIC_ID = TopicId(b"t" * 16)
ONE = Partition(replicas=(1,), isr=(1,), leader=1, directories=(UNASSIGNED_DIR,))


def with_topic(delta: MetadataDelta) -> MetadataDelta:
    delta.topics.add("a", TOPIC_ID)
    return delta


def put(
    delta: MetadataDelta, partition_id: int, partition: Partition, old: Partition | None = None
) -> None:
    delta.topics.set_partition(delta.topics.topic(TOPIC_ID), partition_id, partition, old=old)


def test_a_topic_is_found_by_its_name() -> None:
    topic = Topic("a", TopicId(b"t" * 16), 0)
    topics = Topics(Map({topic.topic_id: topic}), Map(a=topic.topic_id))
    assert topics.by_name_or_none("a") is topic
    assert topics.by_name_or_none("b") is None


def test_changes_do_not_show_in_the_old_image() -> None:
    image = MetadataImage()
    delta = with_topic(MetadataDelta(image))
    put(delta, 0, ONE)
    applied = delta.apply(THERE)
    assert image == MetadataImage()
    assert applied == MetadataImage(
        position=THERE,
        topics=Topics(
            Map({TOPIC_ID: Topic("a", TOPIC_ID, 0)}),
            Map(a=TOPIC_ID),
            partitions=PartitionStore().with_rows(PartitionRows.made([(0, TOPIC_ID, ONE)])),
        ),
    )


def test_a_partition_reads_as_it_was_changed() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    topic = delta.topics.topic(TOPIC_ID)
    assert delta.topics.partition(topic, 0) is None
    put(delta, 0, ONE)
    assert delta.topics.partition(topic, 0) == ONE
    again = MetadataDelta(delta.apply(THERE))
    assert again.topics.partition(topic, 0) == ONE


def test_a_topic_that_is_removed_takes_its_partitions_along() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    put(delta, 0, ONE)
    assert run_to_end(delta.topics.remove_in_slices(TOPIC_ID)).name == "a"
    assert delta.apply(THERE) == MetadataImage(position=THERE)


def test_changed_partitions_do_not_wait_for_the_end_of_a_large_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together: list[int] = []
    with_changes = PartitionStore.with_changes

    def noting(store: PartitionStore, changes: Late, *, added: int) -> PartitionStore:
        together.append(len(changes))
        return with_changes(store, changes, added=added)

    monkeypatch.setattr(PartitionStore, "with_changes", noting)
    delta = with_topic(MetadataDelta(MetadataImage()))
    for partition_id in range(3 * WAITING_MAX + 1):
        put(delta, partition_id, ONE)
    assert together == [WAITING_MAX] * 3
    assert delta.topics.partition_count == 3 * WAITING_MAX + 1
    assert delta.topics.partition(delta.topics.topic(TOPIC_ID), 0) == ONE
    applied = delta.apply(THERE)
    assert together[3:] == [1]
    assert (
        len(list(applied.topics.partitions_of(TOPIC_ID)))
        == applied.topics.partition_count
        == sum(together)
    )


def test_an_unknown_topic_is_an_error() -> None:
    delta = MetadataDelta(MetadataImage())
    with pytest.raises(ReplayError, match="no topic has the id 7474"):
        delta.topics.topic(TOPIC_ID)


def recount(image: MetadataImage) -> tuple[int, int]:
    """The numbers of offline and imbalanced partitions, counted one by one."""
    topics = image.topics
    every = [p for topic_id in topics.by_id for _, p in topics.partitions_of(topic_id)]
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
            delta.topics.add(str(step), topic_id)
        elif draw.random() < 0.2:
            run_to_end(delta.topics.remove_in_slices(draw.choice([*image.topics.by_id])))
        for topic_id in filter(delta.topics.by_id.__contains__, [*image.topics.by_id]):
            topic = delta.topics.topic(topic_id)
            for _ in range(draw.randrange(4)):
                partition_id = draw.choice((0, 1, 2, 1500))
                replicas = tuple(draw.sample(range(1, 5), draw.randint(1, 3)))
                partition = Partition(
                    replicas=replicas,
                    isr=replicas[:1],
                    leader=draw.choice((*replicas, NO_LEADER)),
                    directories=(UNASSIGNED_DIR,) * len(replicas),
                )
                old = delta.topics.partition(topic, partition_id)
                delta.topics.set_partition(topic, partition_id, partition, old=old)
        image = delta.apply(THERE)
        counted = (image.topics.tally.offline, image.topics.tally.imbalanced)
        assert counted == recount(image), f"seed {seed}, step {step}"
        seen.add(counted)
        assert image.at(LOG_BEGIN).topics.tally == image.topics.tally
    assert len(seen) > 5, f"seed {seed}"


def test_the_removal_of_a_topic_with_very_many_partitions_pauses() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    led_by_another = Partition(
        replicas=(1, 2), isr=(2,), leader=2, directories=(UNASSIGNED_DIR,) * 2
    )
    for partition_id in range(2 * PARTS_SLICE * ROWS_MAX):
        put(delta, partition_id, led_by_another)
    image = delta.apply(THERE)
    delta = MetadataDelta(image)
    assert len(list(delta.topics.remove_in_slices(TOPIC_ID))) == 2
    removed = delta.apply(THERE)
    assert removed == MetadataImage(position=THERE)
    # What only the image before still holds is much, and is not freed in one turn.
    assert removed.replaced - image.replaced > 2 * PARTS_SLICE


def test_an_image_counts_what_only_earlier_ones_hold() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    put(delta, 0, ONE)
    delta.configs.set((2, "a"), "k", "v")
    first = delta.apply(THERE)
    again = MetadataDelta(first)
    put(again, 0, ONE, old=ONE)
    second = again.apply(THERE)
    assert second.replaced == first.replaced + 1
    removal = MetadataDelta(second)
    run_to_end(removal.topics.remove_in_slices(TOPIC_ID))
    # The topic, and the part in which its partition lay.
    assert removal.apply(THERE).replaced == second.replaced + 2
    assert MetadataDelta(second).apply(THERE).replaced == second.replaced
