"""Changes on their way into an image: old image + delta = new image.

A delta belongs to the code that replays; nobody else sees it. The subjects' replay functions write
through it, `apply` freezes the result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from immutables import Map

from quorate.controller.errors import ReplayError
from quorate.controller.image import Brokers, MetadataImage, Topic
from quorate.controller.partitions import CHUNK_ROWS, Tally

if TYPE_CHECKING:
    from quorate.controller.image import LogPosition
    from quorate.controller.partitions import Partition
    from quorate.records.ids import TopicId
    from quorate.records.metadata import UnknownRecord


# Changed partitions that wait to be worked into their tables together. All of a large batch at its
# end would take longer than a turn of the loop may.
WAITING_MAX: Final = 128
# Each chunk of a table that is changed is copied, up to a tenth of a millisecond.
CHUNKS_WAITING_MAX: Final = 32


class MetadataDelta:
    """What has changed since `image`; the attributes are the maps of MetadataImage, unfrozen.

    `unknown` are those that came since: every decision makes a delta, and the others may be many.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self.features = image.features.mutate()
        self.brokers = image.brokers.by_id
        self.topics = image.topics.mutate()
        self.topic_ids = image.topic_ids.mutate()
        self.similar_names = image.similar_names.mutate()
        self.configs = image.configs.mutate()
        self.rows = image.rows.mutate()
        self.unknown: list[UnknownRecord] = []
        self._partition_count = image.partition_count
        self._tally = image.tally
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
        topic = self.topics.get(topic_id)
        if topic is None:
            raise ReplayError(f"no topic has the id {topic_id.hex()}")
        return topic

    def topic_id_list(self) -> list[TopicId]:
        """The ids of all topics, in no order: to sort many takes longer than a turn."""
        topics = self.topics.finish()
        self.topics = topics.mutate()
        return list(topics)

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
            self.topics[topic_id] = topic
        return topic

    def remove_topic(self, topic_id: TopicId) -> Topic:
        """Take the topic with its partitions out. Raises ReplayError when unknown."""
        topic = self.flush_partitions(topic_id)
        self._partition_count -= len(topic.partitions)
        if self._tally.imbalanced:
            offline, imbalanced = topic.partitions.standing()
            self._count(offline=-offline, imbalanced=-imbalanced)
        del self.topics[topic_id]
        del self.topic_ids[topic.name]
        self._replaced += 1
        return topic

    def set_config(self, key: tuple[int, str], name: str, value: str | None) -> None:
        """Set one key of a resource, or remove it where the value is None."""
        entries = self.configs.get(key, Map())
        self._replaced += 1
        if value is not None:
            self.configs[key] = entries.set(name, value)
        elif name in entries:
            left = entries.delete(name)
            if left:
                self.configs[key] = left
            else:
                del self.configs[key]

    def apply(self, position: LogPosition) -> MetadataImage:
        """The new image at `position`; the delta is used up."""
        self._flush_all()
        old, tally = self._image.unknown, self._tally
        if self._replaced:
            tally = replace(tally, replaced=tally.replaced + self._replaced)
        return MetadataImage(
            position=position,
            features=self.features.finish(),
            brokers=(
                self._image.brokers
                if self.brokers is self._image.brokers.by_id
                else Brokers(self.brokers)
            ),
            topics=self.topics.finish(),
            topic_ids=self.topic_ids.finish(),
            similar_names=self.similar_names.finish(),
            partition_count=self._partition_count,
            tally=tally,
            configs=self.configs.finish(),
            rows=self.rows.finish(),
            unknown=(*old, *self.unknown) if self.unknown else old,
        )
