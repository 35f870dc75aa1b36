from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from immutables import Map

from quorate.controller.delta import WAITING_MAX, MetadataDelta
from quorate.controller.errors import ReplayError
from quorate.controller.image import Brokers, LogPosition, MetadataImage, Topic
from quorate.controller.partitions import UNASSIGNED_DIR, Partition, PartitionTable
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
    delta.set_partition(TOPIC_ID, 0, ONE)
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
    delta.set_partition(TOPIC_ID, 0, ONE)
    assert delta.partition(TOPIC_ID, 0) == ONE
    again = MetadataDelta(delta.apply(THERE))
    assert again.partition(TOPIC_ID, 0) == ONE


def test_a_topic_that_is_removed_takes_its_partitions_along() -> None:
    delta = with_topic(MetadataDelta(MetadataImage()))
    delta.set_partition(TOPIC_ID, 0, ONE)
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
        delta.set_partition(TOPIC_ID, partition_id, ONE)
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
