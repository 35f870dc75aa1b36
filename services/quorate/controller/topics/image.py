"""Image part: topics and their partitions."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from immutables import Map

from quorate.controller.errors import ReplayError
from quorate.controller.partitions.partition import PartitionCounts
from quorate.controller.partitions.rows import PARTITION_ID_MAX, key_of
from quorate.controller.partitions.store import PartitionStore
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.controller.partitions.partition import Partition
    from quorate.controller.partitions.rows import PartitionRows
    from quorate.controller.slices import Slices
    from quorate.records.ids import TopicId


# Largest number of changed partitions that are buffered and applied together. Applying all of a
# large batch at its end would take longer than an event-loop iteration may.
WAITING_MAX: Final = 128
# Parts of a removed topic that are examined between two pauses.
PARTS_SLICE: Final = 64


@value_type
class Topic:
    """A topic, whose partitions are kept under its number.

    Each topic of an image has a number of its own, in order of creation; the same topic may have
    another number in another process.
    """

    name: str
    topic_id: TopicId
    number: int = field(compare=False)


@value_type
class Topics:
    """All topics by id and by name, and all partitions.

    `similar_names` maps a name with dots replaced by underscores to the names with that form, for
    names that have dots or underscores. `next_topic_number` is the number that the next topic gets.
    """

    by_id: Map[TopicId, Topic] = field(default_factory=Map)
    ids: Map[str, TopicId] = field(default_factory=Map)
    similar_names: Map[str, tuple[str, ...]] = field(default_factory=Map)
    partitions: PartitionStore = field(default_factory=PartitionStore)
    next_topic_number: int = field(default=0, compare=False)
    tally: PartitionCounts = field(default_factory=PartitionCounts)

    @property
    def replaced(self) -> int:
        """Number of replaced or removed entries since this process began to replay."""
        return self.tally.replaced

    @property
    def partition_count(self) -> int:
        """Number of partitions."""
        return len(self.partitions)

    def by_name_or_none(self, name: str) -> Topic | None:
        """The topic of that name, or None."""
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def partition(self, topic_id: TopicId, partition_id: int) -> Partition | None:
        """A partition of a topic, or None if the topic or the partition does not exist."""
        topic = self.by_id.get(topic_id)
        # A larger id would be in the key of another topic's partition.
        if topic is None or not 0 <= partition_id <= PARTITION_ID_MAX:
            return None
        return self.partitions.get(topic.number, partition_id)

    def partitions_of(self, topic_id: TopicId) -> Iterator[tuple[int, Partition]]:
        """All partitions of a topic that exists, with their ids."""
        return self.partitions.of_topic(self.by_id[topic_id].number)

    def mutate(self) -> TopicsDelta:
        """A delta to which changes are written."""
        return TopicsDelta(self)


class TopicsDelta:
    """The changed topics; the attributes are those of Topics, unfrozen."""

    def __init__(self, topics: Topics) -> None:
        self.by_id = topics.by_id.mutate()
        self.ids = topics.ids.mutate()
        self.similar_names = topics.similar_names.mutate()
        self._partitions = topics.partitions
        self.next_topic_number = topics.next_topic_number
        self._tally = topics.tally
        # Changed partitions by key, and how many of them are new.
        self._waiting: dict[int, tuple[TopicId, Partition]] = {}
        self._added = 0
        # Removed topics, and parts of all partitions.
        self._replaced = -topics.partitions.replaced

    @property
    def partition_count(self) -> int:
        """Current number of partitions."""
        return len(self._partitions) + self._added

    def topic(self, topic_id: TopicId) -> Topic:
        """The topic of that id. Raises ReplayError if it is unknown."""
        topic = self.by_id.get(topic_id)
        if topic is None:
            raise ReplayError(f"no topic has the id {topic_id.hex()}")
        return topic

    def add(self, name: str, topic_id: TopicId) -> None:
        """Add a topic, without partitions yet."""
        self.by_id[topic_id] = Topic(name, topic_id, self.next_topic_number)
        self.ids[name] = topic_id
        self.next_topic_number += 1

    def partition(self, topic: Topic, partition_id: int) -> Partition | None:
        """The current state of a partition."""
        if not 0 <= partition_id <= PARTITION_ID_MAX:
            return None
        if self._waiting:
            waiting = self._waiting.get(key_of(topic.number, partition_id))
            if waiting is not None:
                return waiting[1]
        return self._partitions.get(topic.number, partition_id)

    def set_partition(
        self, topic: Topic, partition_id: int, partition: Partition, *, old: Partition | None
    ) -> None:
        """Add or replace one partition; `old` is its previous state."""
        # Nearly all partitions are led by their first replica.
        if partition.is_imbalanced:
            self._count(offline=partition.is_offline, imbalanced=1)
        if old is not None and old.is_imbalanced:
            self._count(offline=-old.is_offline, imbalanced=-1)
        self._waiting[key_of(topic.number, partition_id)] = topic.topic_id, partition
        self._added += old is None
        if len(self._waiting) >= WAITING_MAX:
            self.flush()

    def flush(self) -> PartitionStore:
        """All partitions, with all changes so far applied."""
        if self._waiting:
            self._partitions = self._partitions.with_changes(self._waiting, added=self._added)
            self._waiting, self._added = {}, 0
        return self._partitions

    def put_rows(self, rows: PartitionRows, old: PartitionRows | None = None) -> None:
        """Add or replace many partitions; `old` are their previous rows, if known."""
        partitions = self.flush()
        if old is None:
            old = partitions.rows.rows_at(rows.keys)
        (offline, imbalanced), before = (
            rows.offline_and_imbalanced_counts(),
            old.offline_and_imbalanced_counts(),
        )
        self._count(offline=offline - before[0], imbalanced=imbalanced - before[1])
        self._partitions = partitions.with_rows(rows)

    def count_election(self, *, is_eligible: bool) -> None:
        """Count the election of a leader not in sync: eligible (ELR), or possibly unclean."""
        if is_eligible:
            self._tally = replace(self._tally, eligible=self._tally.eligible + 1)
        else:
            self._tally = replace(self._tally, unclean=self._tally.unclean + 1)

    def _count(self, *, offline: int, imbalanced: int) -> None:
        old = self._tally
        self._tally = PartitionCounts(
            old.offline + offline,
            old.imbalanced + imbalanced,
            old.unclean,
            old.eligible,
            old.replaced,
        )

    def remove_in_slices(self, topic_id: TopicId) -> Slices[Topic]:
        """Remove the topic with its partitions, with pauses: most partitions may belong to it.

        Raises ReplayError if it is unknown.
        """
        topic = self.topic(topic_id)
        partitions = self.flush()
        if self._tally.imbalanced:
            for number, part in enumerate(partitions.rows.parts_of(topic.number, topic_id), 1):
                offline, imbalanced = part.offline_and_imbalanced_counts()
                self._count(offline=-offline, imbalanced=-imbalanced)
                if number % PARTS_SLICE == 0:
                    yield
        self._partitions = partitions.without(topic.number)
        del self.by_id[topic_id]
        del self.ids[topic.name]
        self._replaced += 1
        return topic

    def finish(self) -> Topics:
        """The topics with all changes; the delta is used up."""
        partitions, tally = self.flush(), self._tally
        replaced = self._replaced + partitions.replaced
        if replaced:
            tally = replace(tally, replaced=tally.replaced + replaced)
        return Topics(
            self.by_id.finish(),
            self.ids.finish(),
            self.similar_names.finish(),
            partitions,
            self.next_topic_number,
            tally,
        )
