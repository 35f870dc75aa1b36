"""The registered brokers: a part of the image, a value that every change replaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from immutables import Map

from quorate.controller.placement import RackedBroker, stripe
from quorate.records.value import value
from quorate.records.voters import KRAFT_VERSION

if TYPE_CHECKING:
    from quorate.records.ids import Offset
    from quorate.records.metadata import RegisterBrokerRecord


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

    def with_broker(self, broker: Broker) -> Brokers:
        """The same with this one, new or in the place of what it was."""
        return Brokers(self.by_id.set(broker.registration.broker_id, broker))

    def without(self, broker_id: int) -> Brokers:
        """The same without that one, which is registered."""
        return Brokers(self.by_id.delete(broker_id))

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
