from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.topics.kind import TOPICS
from quorate.records.metadata import ClearElrRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_a_snapshot_has_each_topic_with_its_partitions(cluster: Cluster) -> None:
    for name in ("b", "a"):
        cluster.create(name, (1, 2), (2, 3))
    records = [record for record in TOPICS.snapshot(cluster.image) if record is not None]
    shapes = [TopicRecord, PartitionRecord, PartitionRecord]
    assert [type(record) for record in records] == shapes * 2
    assert [record.name for record in records if isinstance(record, TopicRecord)] == ["a", "b"]
    assert set(shapes) <= set(TOPICS.replay)


def test_what_may_be_about_every_partition_has_pauses() -> None:
    assert set(TOPICS.replay_in_slices) == {ClearElrRecord, RemoveTopicRecord}
