"""The metadata at one offset of the log, as a value: readers hold it and nothing under it moves.

A new image shares with the old one whatever did not change (persistent maps, partition tables), so
that keeping both the committed and the speculative image costs next to nothing. The maps iterate in
no useful order: lists are sorted where they are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from immutables import Map

from quorate.controller.partitions import PartitionTable, Tally
from quorate.controller.placement import RackedBroker, stripe
from quorate.records.ids import Epoch, Offset, TopicId
from quorate.records.value import value
from quorate.records.voters import KRAFT_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from immutables import MapMutation

    from quorate.records.metadata import MetadataRecord, RegisterBrokerRecord, UnknownRecord

RowKey: TypeAlias = tuple[int, tuple[int | str | bytes, ...]]
ConfigKey: TypeAlias = tuple[int, str]


@value
class LogPosition:
    """How much of the log an image reflects: everything below `end_offset`.

    `epoch` and `timestamp_ms` (wall clock) are those of the last batch below it.
    """

    end_offset: Offset
    epoch: Epoch
    timestamp_ms: int


LOG_BEGIN: Final = LogPosition(Offset(0), Epoch(0), 0)


@value
class Broker:
    """A registered broker: its registration with later changes worked in, and where it stands.

    `offset` is that of its RegisterBrokerRecord (the last offset of the snapshot, if it came from
    one): a broker that has replayed it is caught up. Two images are equal without it.
    """

    registration: RegisterBrokerRecord
    offset: Offset = field(compare=False)

    @property
    def is_active(self) -> bool:
        """Whether partitions may be led by it: neither fenced nor on its way out."""
        return not (self.registration.fenced or self.registration.in_controlled_shutdown)

    @property
    def is_usable(self) -> bool:
        """Whether new replicas may be placed on it: active, and not all its disks cordoned."""
        log_dirs, cordoned = self.registration.log_dirs, self.registration.cordoned_log_dirs
        return self.is_active and not (log_dirs and set(log_dirs) <= set(cordoned or ()))


@dataclass(frozen=True)
class Brokers:
    """The registered brokers, and what is worked out from them once for as long as none changes."""

    by_id: Map[int, Broker] = field(default_factory=Map)

    @cached_property
    def active(self) -> frozenset[int]:
        """Who may lead; for membership tests only."""
        return frozenset(id_ for id_, broker in self.by_id.items() if broker.is_active)

    @cached_property
    def fenced_count(self) -> int:
        """How many are fenced."""
        return sum(broker.registration.fenced for broker in self.by_id.values())

    @cached_property
    def shutting_down_count(self) -> int:
        """How many are on their way out, and not yet fenced."""
        unfenced = len(self.by_id) - self.fenced_count
        return unfenced - len(self.active)

    @cached_property
    def kraft_version_max(self) -> int | None:
        """The highest kraft.version that all of them can read; None without brokers."""
        return min((_kraft_version_max(b) for b in self.by_id.values()), default=None)

    @cached_property
    def striped(self) -> tuple[RackedBroker, ...]:
        """Who may be given replicas, neighbours in different racks where possible."""
        return stripe(
            RackedBroker(id_, broker.registration.rack)
            for id_, broker in self.by_id.items()
            if broker.is_usable
        )


def _kraft_version_max(broker: Broker) -> int:
    for feature in broker.registration.features:
        if feature.name == KRAFT_VERSION:
            return feature.max_supported_version
    return 0


@value
class Topic:
    name: str
    topic_id: TopicId
    partitions: PartitionTable = field(default_factory=PartitionTable)


class View(Protocol):
    """What decisions on topics and settings look at: an image, or one that is being changed."""

    @property
    def features(self) -> Map[str, int]: ...
    @property
    def brokers(self) -> Brokers: ...
    @property
    def topics(self) -> Map[TopicId, Topic] | MapMutation[TopicId, Topic]: ...
    @property
    def topic_ids(self) -> Map[str, TopicId] | MapMutation[str, TopicId]: ...
    @property
    def similar_names(
        self,
    ) -> Map[str, tuple[str, ...]] | MapMutation[str, tuple[str, ...]]: ...
    @property
    def partition_count(self) -> int: ...
    def config(self, key: ConfigKey) -> Mapping[str, str]: ...


@value
class MetadataImage:
    """All metadata below `position.end_offset`.

    `rows` holds the records of the subjects that are not built yet, by key (rule 22); `unknown`
    those whose type this release does not know, in the order of the log. `similar_names` maps a
    topic name with its dots written as underscores to the names that look like it, for those that
    have either.
    """

    position: LogPosition = LOG_BEGIN
    features: Map[str, int] = field(default_factory=Map)
    brokers: Brokers = field(default_factory=Brokers)
    topics: Map[TopicId, Topic] = field(default_factory=Map)
    topic_ids: Map[str, TopicId] = field(default_factory=Map)
    similar_names: Map[str, tuple[str, ...]] = field(default_factory=Map)
    partition_count: int = 0
    tally: Tally = field(default_factory=Tally)
    configs: Map[ConfigKey, Map[str, str]] = field(default_factory=Map)
    rows: Map[RowKey, MetadataRecord] = field(default_factory=Map)
    unknown: tuple[UnknownRecord, ...] = ()

    def topic(self, name: str) -> Topic | None:
        """The topic of that name, or None."""
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def config(self, key: ConfigKey) -> Map[str, str]:
        """What is set on a resource; empty when nothing is."""
        return self.configs.get(key, Map())

    def at(self, position: LogPosition) -> MetadataImage:
        """The same metadata at a later place of the log, where nothing changed since."""
        # Once for every commit, and `dataclasses.replace` costs as much as the rest of it.
        return MetadataImage(
            position,
            self.features,
            self.brokers,
            self.topics,
            self.topic_ids,
            self.similar_names,
            self.partition_count,
            self.tally,
            self.configs,
            self.rows,
            self.unknown,
        )
