"""Topics: creation, config changes, moves, ISR changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.partitions.replica_placer import place
from quorate.controller.topics.messages import (
    CreateTopics,
    CreateTopicsReply,
    DeleteTopics,
    NewTopic,
)
from quorate.records.errors import ErrorCode
from quorate.sim.log_generator.options import DAY_MS, MINUTE_MS, SECOND_MS
from quorate.sim.log_generator.stock_records import (
    each,
    expand,
    grow,
    is_on,
    partitions_where,
    reassign,
    shrink,
)
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions.partition import Partition
    from quorate.records.ids import TopicId
    from quorate.sim.log_generator.brokers import WeekBrokers
    from quorate.sim.log_generator.leader import LogLeader
    from quorate.sim.log_generator.options import WeekOptions
    from quorate.sim.log_generator.schedule import Schedule

_Settings: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
_DOMAINS: Final = ("billing", "catalog", "fraud", "iot", "orders", "payments", "search", "users")
_KINDS: Final = ("audit", "changelog", "commands", "events", "metrics", "snapshots")
# Partitions per topic and replicas of each, with weights; some topics need only one replica.
_PARTITIONS: Final = (("1", 0.1), ("3", 0.2), ("6", 0.25), ("12", 0.25), ("24", 0.15), ("48", 0.05))
_COPIES: Final = (("3", 0.88), ("2", 0.08), ("1", 0.04))
_TOPIC_SETTINGS: Final[_Settings] = (
    ("retention.ms", ("3600000", "86400000", "259200000", "604800000")),
    ("max.message.bytes", ("1048588", "4194304", "10485760")),
    ("min.insync.replicas", ("1", "2")),
    ("compression.type", ("producer", "lz4", "zstd")),
    ("segment.bytes", ("268435456", "1073741824")),
)
_BROKER_SETTINGS: Final[_Settings] = (
    ("log.cleaner.threads", ("1", "2", "4")),
    ("num.io.threads", ("8", "16")),
    ("leader.replication.throttled.rate", ("10485760", "104857600")),
)
_CREATED_TOGETHER: Final = 25
_MOVED_TOGETHER: Final = 50
_GROWN_MAX: Final = 96


class WeekTopics:
    """The existing topics, in lists for fast random choice."""

    def __init__(
        self, options: WeekOptions, leading: LogLeader, brokers: WeekBrokers, schedule: Schedule
    ) -> None:
        self._leading = leading
        self._brokers = brokers
        self._schedule = schedule
        self._random_source = RandomSource(options.seed, "topics")
        self._copies_max = options.brokers
        self._made = 0
        # Permanent topics, and temporary topics of jobs.
        self._lasting: list[tuple[TopicId, str]] = []
        self._passing: list[tuple[TopicId, str]] = []

    # --- coming and going -------------------------------------------------------------------------

    def create(self, count: int) -> None:
        """Create the topics of the first day."""
        for start in range(0, count, _CREATED_TOGETHER):
            wanted = [self._lasting_topic() for _ in range(min(_CREATED_TOGETHER, count - start))]
            self._lasting += self._create(wanted)
            self._leading.at(self._leading.now_ms + self._random_source.between(50, 900))

    def _lasting_topic(self) -> NewTopic:
        self._made += 1
        choice = self._random_source.random.choice
        name = f"{choice(_DOMAINS)}.{choice(_KINDS)}.{self._made:05d}"
        configs: list[tuple[str, str]] = []
        if self._random_source.chance(0.2):
            configs.append(("cleanup.policy", "compact"))
        if self._random_source.chance(0.3):
            configs.append(("min.insync.replicas", "2"))
        if self._random_source.chance(0.04):
            configs.append(("unclean.leader.election.enable", "true"))
        copies = min(int(self._random_source.weighted(_COPIES)), self._copies_max)
        partitions = int(self._random_source.weighted(_PARTITIONS))
        return NewTopic(name, partitions, copies, configs=tuple(configs))

    def _create(self, wanted: list[NewTopic]) -> list[tuple[TopicId, str]]:
        reply = self._leading.decide(CreateTopics(tuple(wanted)))
        assert isinstance(reply, CreateTopicsReply), reply
        return [
            (topic.topic_id, topic.name)
            for topic in reply.topics
            if topic.error is ErrorCode.NONE and topic.topic_id is not None
        ]

    def pass_through(self, partitions: int) -> None:
        """Create a temporary topic, and schedule the deletion of one of the oldest of them."""
        self._made += 1
        name = f"job-{self._made:07d}"
        copies = min(2, self._copies_max)
        self._passing += self._create(
            [NewTopic(name, partitions, copies, configs=(("retention.ms", "3600000"),))]
        )
        self._schedule.after(
            self._random_source.between(10 * MINUTE_MS, DAY_MS), self._delete_oldest
        )

    def _delete_oldest(self) -> None:
        if self._passing:
            _, name = self._passing.pop(
                self._random_source.between(0, min(9, len(self._passing) - 1))
            )
            self._leading.decide(DeleteTopics((name,)))

    def replace(self) -> None:
        """Delete a permanent topic and create a new one."""
        if self._lasting:
            _, name = self._lasting.pop(self._random_source.between(0, len(self._lasting) - 1))
            self._leading.decide(DeleteTopics((name,)))
        self._lasting += self._create([self._lasting_topic()])

    def grow(self) -> None:
        """Add partitions to a random topic."""
        drawn = self._draw()
        if drawn is None:
            return
        image = self._leading.image
        first = image.topics.partition(drawn, 0)
        count = _partition_count(image, drawn)
        striped = image.brokers.striped
        if first is None or count > _GROWN_MAX or len(striped) < len(first.replicas):
            return
        assignments = place(
            striped,
            partitions=max(1, count // 2),
            replication_factor=len(first.replicas),
            placed=image.topics.partition_count,
        )
        self._leading.take(grow(image, drawn, count, assignments))

    def _draw(self) -> TopicId | None:
        """A random topic; None if none exists."""
        count = len(self._lasting) + len(self._passing)
        if not count:
            return None
        at = self._random_source.between(0, count - 1)
        lasting = len(self._lasting)
        return self._lasting[at][0] if at < lasting else self._passing[at - lasting][0]

    def _draw_large(self) -> TopicId | None:
        """The larger of two random topics: a topic with more partitions is written to more."""
        drawn = [topic_id for topic_id in (self._draw(), self._draw()) if topic_id is not None]
        image = self._leading.image
        return max(drawn, key=lambda topic_id: _partition_count(image, topic_id), default=None)

    # --- replicas that fall behind ----------------------------------------------------------------

    def burst(self) -> None:
        """Let one follower of each partition of a topic leave the ISR and catch up later."""
        drawn = self._draw_large()
        if drawn is None:
            return
        records = []
        for partition_id, partition in self._leading.image.topics.partitions_of(drawn):
            followers = [broker for broker in partition.isr if broker != partition.leader]
            if followers:
                broker = self._random_source.random.choice(followers)
                records.append(shrink(drawn, partition_id, partition, broker))
        self._leading.take(records)
        if records:
            wait_ms = self._random_source.between(SECOND_MS, 90 * SECOND_MS)
            self._schedule.after(wait_ms, lambda: self._caught_up(drawn))

    def _caught_up(self, topic_id: TopicId) -> None:
        image = self._leading.image
        if topic_id not in image.topics.by_id:
            return
        able = self._brokers.able
        # Most partitions have all replicas in sync.
        self._leading.take(
            expand(topic_id, partition_id, partition, able)
            for partition_id, partition in image.topics.partitions_of(topic_id)
            if len(partition.isr) < len(partition.replicas)
        )

    # --- reassignments ----------------------------------------------------------------------------

    def move(self, count: int) -> None:
        """Move one replica of each partition of `count` topics to another broker."""
        places: list[tuple[TopicId, int]] = []
        for _ in range(count):
            drawn = self._draw()
            if drawn is not None:
                partitions = self._leading.image.topics.partitions_of(drawn)
                places += [(drawn, partition_id) for partition_id, _ in partitions]
        self._move(list(dict.fromkeys(places)), leaving=None, to=None)

    def drain(self, broker: int) -> None:
        """Move all replicas of a broker to other brokers."""
        places = partitions_where(self._leading.image, is_on(broker))
        self._move(places, leaving=broker, to=None)

    def fill(self, broker: int, share: float) -> None:
        """Move replicas of a fraction `share` of the partitions to a new broker."""
        count = int(self._leading.image.topics.partition_count * share)
        places: list[tuple[TopicId, int]] = []
        while len(places) < count and (drawn := self._draw()) is not None:
            count_of_drawn = _partition_count(self._leading.image, drawn)
            places.append((drawn, self._random_source.between(0, count_of_drawn - 1)))
        self._move(list(dict.fromkeys(places)), leaving=None, to=broker)

    def _move(
        self, places: list[tuple[TopicId, int]], *, leaving: int | None, to: int | None
    ) -> None:
        """Move in rounds, as operators do: the next one starts when the previous one is done."""
        now, later = places[:_MOVED_TOGETHER], places[_MOVED_TOGETHER:]
        image, able = self._leading.image, sorted(self._brokers.able)
        records = []
        for topic_id, partition_id, partition in each(image, now):
            target = self._target(partition, able, leaving, to)
            if target is not None:
                records.append(reassign(image, topic_id, partition_id, partition, target))
        self._leading.take(records)

        def done() -> None:
            able = self._brokers.able
            self._leading.take(expand(*found, able) for found in each(self._leading.image, now))
            if later:
                self._move(later, leaving=leaving, to=to)

        if now:
            self._schedule.after(self._random_source.between(10 * SECOND_MS, 3 * MINUTE_MS), done)

    def _target(
        self, partition: Partition, able: list[int], leaving: int | None, to: int | None
    ) -> tuple[int, ...] | None:
        """The new replicas: one of the old ones is replaced by another broker.

        None if the partition has no replica on `leaving`, or if no broker can take the replica.
        """
        free = [broker for broker in able if broker not in partition.replicas]
        if to is not None:
            free = [to] if to in free else []
        if not free:
            return None
        replicas = list(partition.replicas)
        if leaving is not None:
            at = replicas.index(leaving) if leaving in replicas else -1
            if at < 0:
                return None
        else:
            at = self._random_source.between(0, len(replicas) - 1)
        replicas[at] = self._random_source.random.choice(free)
        return tuple(replicas)

    # --- configurations ---------------------------------------------------------------------------

    def configure(self) -> None:
        """Set or delete a config, mostly of a topic."""
        if self._random_source.chance(0.9) and self._lasting:
            _, name = self._random_source.random.choice(self._lasting)
            resource = ConfigResource(ResourceType.TOPIC, name)
            settings = _TOPIC_SETTINGS
        else:
            able = sorted(self._brokers.able)
            name = (
                str(self._random_source.random.choice(able))
                if able and self._random_source.chance(0.7)
                else ""
            )
            resource = ConfigResource(ResourceType.BROKER, name)
            settings = _BROKER_SETTINGS
        key, values = self._random_source.random.choice(settings)
        if self._random_source.chance(0.25):
            change = ConfigChange(key, AlterOperation.DELETE)
        else:
            change = ConfigChange(
                key, AlterOperation.SET, self._random_source.random.choice(values)
            )
        self._leading.decide(IncrementalAlterConfigs((ConfigAlteration(resource, (change,)),)))


def _partition_count(image: MetadataImage, topic_id: TopicId) -> int:
    return image.topics.partitions.count_of(image.topics.by_id[topic_id].number)
