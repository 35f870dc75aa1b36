"""Topics with their partitions: a part of the image, and that part while it changes."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from immutables import Map

from quorate.controller.errors import ReplayError
from quorate.controller.partitions import CHUNK_ROWS, PartitionTable, Tally
from quorate.records.value import value

if TYPE_CHECKING:
    from quorate.controller.partitions import Partition
    from quorate.records.ids import TopicId


# Changed partitions that wait to be worked into their tables together. All of a large batch at its
# end would take longer than a turn of the loop may.
WAITING_MAX: Final = 128
# Each chunk of a table that is changed is copied, up to a tenth of a millisecond.
CHUNKS_WAITING_MAX: Final = 32


@value
class Topic:
    name: str
    topic_id: TopicId
    partitions: PartitionTable = field(default_factory=PartitionTable)


@value
class Topics:
    """All topics by id and by name.

    `similar_names` maps a name with its dots written as underscores to the names that look like it,
    for those that have either.
    """

    by_id: Map[TopicId, Topic] = field(default_factory=Map)
    ids: Map[str, TopicId] = field(default_factory=Map)
    similar_names: Map[str, tuple[str, ...]] = field(default_factory=Map)
    partition_count: int = 0
    tally: Tally = field(default_factory=Tally)

    def named(self, name: str) -> Topic | None:
        """The topic of that name, or None."""
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def mutate(self) -> TopicsDelta:
        """What changes of it are written to."""
        return TopicsDelta(self)


class TopicsDelta:
    """What has changed since; the attributes are those of Topics, unfrozen."""

    def __init__(self, topics: Topics) -> None:
        self.by_id = topics.by_id.mutate()
        self.ids = topics.ids.mutate()
        self.similar_names = topics.similar_names.mutate()
        self._partition_count = topics.partition_count
        self._tally = topics.tally
        self._partitions: dict[TopicId, dict[int, Partition]] = {}
        self._waiting = 0
        # Of those that wait, the ones that are in no table yet.
        self._added = 0
        self._chunks_waiting: set[tuple[TopicId, int]] = set()
        self._replaced = 0

    @property
    def partition_count(self) -> int:
        """How many partitions there are now."""
        return self._partition_count + self._added

    def topic(self, topic_id: TopicId) -> Topic:
        """The topic without its partitions' changes so far. Raises ReplayError when unknown."""
        topic = self.by_id.get(topic_id)
        if topic is None:
            raise ReplayError(f"no topic has the id {topic_id.hex()}")
        return topic

    def topic_id_list(self) -> list[TopicId]:
        """The ids of all topics, in no order: to sort many takes longer than a turn."""
        by_id = self.by_id.finish()
        self.by_id = by_id.mutate()
        return list(by_id)

    def partition(self, topic_id: TopicId, partition_id: int) -> Partition | None:
        """The partition as changed so far. Raises ReplayError when the topic is unknown."""
        changed = self._partitions.get(topic_id, {}).get(partition_id)
        if changed is not None:
            return changed
        return self.topic(topic_id).partitions.get(partition_id)

    def set_partition(
        self,
        topic_id: TopicId,
        partition_id: int,
        partition: Partition,
        *,
        old: Partition | None,
    ) -> None:
        """Add or replace one partition of a topic that exists; `old` is what was there."""
        # Nearly all partitions are led by their first replica.
        if partition.is_imbalanced:
            self._count(offline=partition.is_offline, imbalanced=1)
        if old is not None and old.is_imbalanced:
            self._count(offline=-old.is_offline, imbalanced=-1)
        self._partitions.setdefault(topic_id, {})[partition_id] = partition
        self._added += old is None
        self._waiting += 1
        self._chunks_waiting.add((topic_id, partition_id // CHUNK_ROWS))
        if self._waiting >= WAITING_MAX or len(self._chunks_waiting) >= CHUNKS_WAITING_MAX:
            self._flush_all()

    def count_election(self, *, is_eligible: bool) -> None:
        """A leader that was not in sync: eligible all the same, or one that may lack records."""
        if is_eligible:
            self._tally = replace(self._tally, eligible=self._tally.eligible + 1)
        else:
            self._tally = replace(self._tally, unclean=self._tally.unclean + 1)

    def _count(self, *, offline: int, imbalanced: int) -> None:
        old = self._tally
        self._tally = Tally(
            old.offline + offline,
            old.imbalanced + imbalanced,
            old.unclean,
            old.eligible,
            old.replaced,
        )

    def _flush_all(self) -> None:
        for topic_id in list(self._partitions):
            self.flush_partitions(topic_id)
        self._waiting = 0
        self._chunks_waiting.clear()

    def flush_partitions(self, topic_id: TopicId) -> Topic:
        """Work the changed partitions into the topic's table, and return the topic."""
        topic = self.topic(topic_id)
        changes = self._partitions.pop(topic_id, None)
        if changes:
            table = topic.partitions.with_changes(changes)
            grown = len(table) - len(topic.partitions)
            self._partition_count += grown
            self._added -= grown
            self._replaced += 1
            topic = Topic(topic.name, topic_id, table)
            self.by_id[topic_id] = topic
        return topic

    def remove(self, topic_id: TopicId) -> Topic:
        """Take the topic with its partitions out. Raises ReplayError when unknown."""
        topic = self.flush_partitions(topic_id)
        self._partition_count -= len(topic.partitions)
        if self._tally.imbalanced:
            offline, imbalanced = topic.partitions.standing()
            self._count(offline=-offline, imbalanced=-imbalanced)
        del self.by_id[topic_id]
        del self.ids[topic.name]
        self._replaced += 1
        return topic

    def finish(self) -> Topics:
        """The topics with all that changed; the delta is used up."""
        self._flush_all()
        tally = self._tally
        if self._replaced:
            tally = replace(tally, replaced=tally.replaced + self._replaced)
        return Topics(
            self.by_id.finish(),
            self.ids.finish(),
            self.similar_names.finish(),
            self._partition_count,
            tally,
        )
