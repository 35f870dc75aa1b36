"""Image part: the registered brokers; a value that every change replaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from immutables import Map

from quorate.controller.partitions.partition import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR
from quorate.controller.partitions.replica_placer import RackedBroker, stripe
from quorate.records.value_types import value_type
from quorate.records.voters import KRAFT_VERSION

if TYPE_CHECKING:
    from quorate.records.ids import DirectoryId, Offset
    from quorate.records.metadata import RegisterBrokerRecord


@value_type
class Broker:
    """A registered broker: its registration with later changes applied, and its offset.

    `offset` is that of its RegisterBrokerRecord (the last offset of the snapshot, if it came from
    one): a broker that has replayed it is caught up. Equality of images ignores it.
    """

    registration: RegisterBrokerRecord
    offset: Offset = field(compare=False)

    @property
    def is_active(self) -> bool:
        """True if it may lead partitions: neither fenced nor in controlled shutdown."""
        return not (self.registration.fenced or self.registration.in_controlled_shutdown)

    @property
    def is_shutting_down(self) -> bool:
        """True if it is in controlled shutdown, and not yet fenced."""
        return self.registration.in_controlled_shutdown and not self.registration.fenced

    def has_online(self, directory: DirectoryId) -> bool:
        """True if a replica in this log directory is online.

        If the broker registered none, as before metadata.version 3.7-IV2, all but a lost one are.
        """
        if directory == LOST_DIR:
            return False
        log_dirs = self.registration.log_dirs
        return directory in (UNASSIGNED_DIR, MIGRATING_DIR) or not log_dirs or directory in log_dirs

    @property
    def directory_of_new_replicas(self) -> DirectoryId:
        """Its only log directory; UNASSIGNED if it has several and chooses itself."""
        log_dirs = self.registration.log_dirs
        if not log_dirs:
            return MIGRATING_DIR
        return log_dirs[0] if len(log_dirs) == 1 else UNASSIGNED_DIR

    @property
    def accepts_replicas(self) -> bool:
        """True if new replicas may be placed on it: active, and not all its disks cordoned."""
        log_dirs, cordoned = self.registration.log_dirs, self.registration.cordoned_log_dirs
        return self.is_active and not (log_dirs and cordoned and set(log_dirs) <= set(cordoned))


@value_type
class BrokerTotals:
    """Numbers of brokers by state.

    `by_kraft_version` counts the brokers by the highest kraft.version that each supports.
    """

    fenced: int = 0
    shutting_down: int = 0
    by_kraft_version: Map[int, int] = field(default_factory=Map)

    def moved(self, before: Broker | None, now: Broker | None) -> BrokerTotals:
        """The totals after a broker changes from `before` to `now`; None means not registered."""
        fenced, shutting_down, levels = self.fenced, self.shutting_down, self.by_kraft_version
        level = None if before is None else _kraft_version_max(before)
        next_level = None if now is None else _kraft_version_max(now)
        if level != next_level:
            levels = _counted(_counted(levels, level, -1), next_level, 1)
        for broker, by in ((before, -1), (now, 1)):
            if broker is not None:
                fenced += by * broker.registration.fenced
                shutting_down += by * broker.is_shutting_down
        return BrokerTotals(fenced, shutting_down, levels)


def _counted(counts: Map[int, int], key: int | None, by: int) -> Map[int, int]:
    if key is None:
        return counts
    count = counts.get(key, 0) + by
    return counts.set(key, count) if count else counts.delete(key)


@dataclass(frozen=True)
class Brokers:
    """The registered brokers, and values derived from them.

    Derived values are carried over to the next value, which every change creates, so that the cost
    of a change does not grow with the number of brokers. Others are computed on first access.
    """

    by_id: Map[int, Broker] = field(default_factory=Map)

    def __post_init__(self) -> None:
        if not self.by_id:
            vars(self).update(holders=Map(), totals=BrokerTotals(), active=frozenset(), striped=())

    def with_broker(self, broker: Broker) -> Brokers:
        """The same with this broker, new or replacing its previous state."""
        broker_id = broker.registration.broker_id
        changed = Brokers(self.by_id.set(broker_id, broker))
        self._carry_on(changed, broker_id, self.by_id.get(broker_id), broker)
        return changed

    def without(self, broker_id: int) -> Brokers:
        """The same without that registered broker."""
        changed = Brokers(self.by_id.delete(broker_id))
        self._carry_on(changed, broker_id, self.by_id[broker_id], None)
        return changed

    def _carry_on(
        self, changed: Brokers, broker_id: int, before: Broker | None, now: Broker | None
    ) -> None:
        """Carry derived values over to `changed`, in which one broker differs."""
        known, into = vars(self), vars(changed)
        if "holders" in known:
            into["holders"] = _held_by(self.holders, broker_id, _dirs_of(before), _dirs_of(now))
        if "totals" in known:
            into["totals"] = self.totals.moved(before, now)
        if "striped" in known and _place_of(before) == _place_of(now):
            into["striped"] = self.striped
        was_active = before is not None and before.is_active
        is_active = now is not None and now.is_active
        if "active" in known:
            if was_active is is_active:
                into["active"] = self.active
            else:
                into["_active_then"] = (self.active, Map({broker_id: is_active}))
        elif "_active_then" in known:
            then, changes = known["_active_then"]
            if was_active is not is_active:
                changes = changes.set(broker_id, is_active)
            into["_active_then"] = (then, changes)

    @cached_property
    def active(self) -> frozenset[int]:
        """Brokers that may lead; for membership tests only."""
        known: tuple[frozenset[int], Map[int, bool]] | None = vars(self).get("_active_then")
        if known is None:
            return frozenset(id_ for id_, broker in self.by_id.items() if broker.is_active)
        then, changes = known
        came = [broker_id for broker_id, is_active in changes.items() if is_active]
        gone = [broker_id for broker_id, is_active in changes.items() if not is_active]
        return then.union(came).difference(gone)

    @cached_property
    def holders(self) -> Map[DirectoryId, tuple[int, ...]]:
        """The brokers that have each log directory: exactly one, except in a log of Kafka."""
        holders: Map[DirectoryId, tuple[int, ...]] = Map()
        for broker_id, broker in self.by_id.items():
            holders = _held_by(holders, broker_id, (), broker.registration.log_dirs)
        return holders

    @cached_property
    def totals(self) -> BrokerTotals:
        """Counts of brokers by state."""
        totals = BrokerTotals()
        for broker in self.by_id.values():
            totals = totals.moved(None, broker)
        return totals

    @property
    def fenced_count(self) -> int:
        """Number of fenced brokers."""
        return self.totals.fenced

    @property
    def shutting_down_count(self) -> int:
        """Number of brokers in controlled shutdown, and not yet fenced."""
        return self.totals.shutting_down

    @property
    def kraft_version_max(self) -> int | None:
        """The highest kraft.version that all of them can read; None without brokers."""
        return min(self.totals.by_kraft_version, default=None)

    @cached_property
    def striped(self) -> tuple[RackedBroker, ...]:
        """Brokers that may get replicas, neighbours in different racks where possible."""
        return stripe(place for place in map(_place_of, self.by_id.values()) if place is not None)

    def large_parts(self) -> tuple[Map[Any, Any], ...]:
        """The parts that may be large, as far as they exist."""
        holders: Map[Any, Any] | None = vars(self).get("holders")
        return (self.by_id,) if holders is None else (self.by_id, holders)


def _place_of(broker: Broker | None) -> RackedBroker | None:
    """The broker as a target for new replicas; None if it may not be one."""
    if broker is None or not broker.accepts_replicas:
        return None
    return RackedBroker(broker.registration.broker_id, broker.registration.rack)


def _dirs_of(broker: Broker | None) -> tuple[DirectoryId, ...]:
    return () if broker is None else broker.registration.log_dirs


def _held_by(
    holders: Map[DirectoryId, tuple[int, ...]],
    broker_id: int,
    before: tuple[DirectoryId, ...],
    now: tuple[DirectoryId, ...],
) -> Map[DirectoryId, tuple[int, ...]]:
    """The holders of directories once a broker has these instead of those before."""
    if before == now:
        return holders
    mutation = holders.mutate()
    for directory in before:
        left = tuple(each for each in mutation.get(directory, ()) if each != broker_id)
        if left:
            mutation[directory] = left
        else:
            mutation.pop(directory, None)
    for directory in now:
        mutation[directory] = tuple(sorted({*mutation.get(directory, ()), broker_id}))
    return mutation.finish()


def _kraft_version_max(broker: Broker) -> int:
    for feature in broker.registration.features:
        if feature.name == KRAFT_VERSION:
            return feature.max_supported_version
    return 0
