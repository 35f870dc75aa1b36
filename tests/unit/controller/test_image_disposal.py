"""An image is freed a little at a time, and what others hold of it stays."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from immutables import Map

from quorate.controller.image import MetadataImage
from quorate.controller.image_disposal import KEYS_SLICE, dispose_in_slices
from quorate.controller.partitions.store import PartitionStore
from quorate.controller.partitions.tree import PartitionTree
from quorate.controller.slices import run_to_end
from quorate.controller.topics.image import Topic, Topics
from quorate.records.ids import TopicId

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster

TOPICS = 10 * KEYS_SLICE


class ToldTopic(Topic):
    """It tells when it is freed."""

    def __init__(self, topic_id: TopicId, freed: list[int]) -> None:
        super().__init__(str(topic_id), topic_id, 0)
        self.freed = freed

    def __del__(self) -> None:
        self.freed.append(1)


class Node:
    """Stands for a node of partitions, and tells when it is freed."""

    def __init__(self, freed: list[int]) -> None:
        self.freed = freed

    def __del__(self) -> None:
        self.freed.append(1)


class Nodes(PartitionTree):
    """A tree of so many nodes, which it leaves to the first who takes it apart."""

    def __init__(self, freed: list[int], count: int) -> None:
        super().__init__()
        self.left: list[object] = [Node(freed) for _ in range(count)]

    def disposable_parts(self) -> list[object]:
        left, self.left = self.left, []
        return left


def topics_of(freed: list[int], numbers: range) -> dict[TopicId, Topic]:
    ids = [TopicId(number.to_bytes(16)) for number in numbers]
    return {topic_id: ToldTopic(topic_id, freed) for topic_id in ids}


def test_a_slice_frees_so_many_and_no_more() -> None:
    freed: list[int] = []
    image = MetadataImage(topics=Topics(Map(topics_of(freed, range(TOPICS)))))
    slices = dispose_in_slices(image)
    del image
    counts = [0, *(len(freed) for _ in slices)]
    assert counts[-1] == len(freed) == TOPICS
    # Some of a slice go with its nodes in the next one.
    steps = [after - before for before, after in pairwise(counts)]
    assert max(steps) <= 2 * KEYS_SLICE


def test_partitions_go_a_node_at_a_time() -> None:
    freed: list[int] = []
    topics = Topics(partitions=PartitionStore(Nodes(freed, 5)))
    slices = dispose_in_slices(MetadataImage(topics=topics))
    assert [len(freed) for _ in slices] == [1, 2, 3, 4, 5]


def test_what_a_later_image_holds_stays() -> None:
    freed: list[int] = []
    first = MetadataImage(topics=Topics(Map(topics_of(freed, range(TOPICS)))))
    changed = first.topics.by_id.mutate()
    for topic_id, topic in topics_of(freed, range(100)).items():
        changed[topic_id] = topic
    later = MetadataImage(topics=Topics(changed.finish()))
    slices = dispose_in_slices(first)
    del first, changed, topic, topic_id
    run_to_end(slices)
    assert len(freed) == 100
    assert len(later.topics.by_id) == TOPICS
    assert all(isinstance(topic, ToldTopic) for topic in later.topics.by_id.values())


def test_every_part_of_a_real_image_is_walked(cluster: Cluster) -> None:
    cluster.create("t", (1, 2), (2, 3))
    image = cluster.image
    copy: Any = replace(image)
    run_to_end(dispose_in_slices(copy))
    assert cluster.image == image
    assert len(image.topics.by_id) == len(image.topics.ids) == 1
