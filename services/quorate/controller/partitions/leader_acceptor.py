"""Decides which replicas may lead: active brokers, in online log directories (KIP-858).

A broker reports its directories when it registers. A replica in another directory is lost, or will
return with its disk; if it led from an empty directory, records that only it has would be lost.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.controller.partitions.broker_sets import membership_test
from quorate.controller.partitions.partition import LOST_DIR, MIGRATING_DIR, UNASSIGNED_DIR

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.brokers.image import Brokers
    from quorate.controller.partitions.partition import Partition
    from quorate.controller.partitions.rows import Bits, PartitionRows, Rows
    from quorate.records.ids import DirectoryId

# A holder that matches every broker; -1 is taken, since replicas are padded with it.
_ANY_BROKER: Final = -2
_NO_BROKER: Final = -3


class LeaderAcceptor:
    """Decides if a replica may lead, regardless of the ISR (Kafka: LeaderAcceptor)."""

    def __init__(self, brokers: Brokers, active: frozenset[int]) -> None:
        """`active` are the brokers that will be active after the decision is replayed."""
        self._brokers = brokers
        self.active = active

    @classmethod
    def of(cls, brokers: Brokers) -> LeaderAcceptor:
        """The acceptor for the current state of the brokers."""
        return cls(brokers, brokers.active)

    def accepts(self, partition: Partition, broker_id: int) -> bool:
        """True if the broker's replica of that partition may lead it."""
        if broker_id not in self.active:
            return False
        directory = partition.directory_of(broker_id)
        return directory is None or self._is_online(broker_id, directory)

    def _is_online(self, broker_id: int, directory: DirectoryId) -> bool:
        broker = self._brokers.by_id.get(broker_id)
        # A broker that is not registered is not active either.
        return broker is None or broker.has_online(directory)

    # --- of many partitions ---------------------------------------------------------------------

    @cached_property
    def is_active(self) -> Callable[[Rows], Bits]:
        """A vectorized test; made on demand, because single partitions do not need its table."""
        return membership_test(self.active)

    def may_lead(self, rows: PartitionRows, brokers: Rows) -> Bits:
        """A mask of these brokers that may lead; shape (n,) or (any, n), for n rows."""
        return online(self.is_active(brokers), brokers, self.offline(rows))

    def offline(self, rows: PartitionRows) -> Rows | None:
        """Shape (width, n): the replicas in offline directories, and no broker in other positions.

        None if there are none, which a comparison of the columns finds: nearly always each replica
        is in a directory that its broker has.
        """
        directories = rows.directories
        # Transposed: numpy takes four times as long for many short rows.
        places, replicas = rows.places.T, np.ascontiguousarray(rows.replicas.T)
        holders = np.array([self._holder(directory) for directory in directories], np.int32)
        if (holders == _ANY_BROKER).all():
            return None
        held_by = holders.take(places)
        is_suspect: Bits = held_by != replicas
        if is_suspect.any():
            is_suspect &= (held_by != _ANY_BROKER) & (replicas >= 0)
        if not is_suspect.any():
            return None
        # There are few distinct pairs of the rest, each decided once.
        kinds, of_kind = np.unique(
            replicas[is_suspect].astype(np.int64) * len(directories) + places[is_suspect],
            return_inverse=True,
        )
        judged = [divmod(kind, len(directories)) for kind in kinds.tolist()]
        offline = [not self._is_online(broker, directories[place]) for broker, place in judged]
        if not any(offline):
            return None
        is_suspect[is_suspect] = np.array(offline)[of_kind]
        found: Rows = np.where(is_suspect, replicas, np.int32(_NO_BROKER))
        return found

    def _holder(self, directory: DirectoryId) -> int:
        """The broker on which a replica in that directory is online."""
        if directory in (UNASSIGNED_DIR, MIGRATING_DIR):
            return _ANY_BROKER
        holders = self._brokers.holders.get(directory)
        return _NO_BROKER if holders is None or directory == LOST_DIR else holders[0]


def online(found: Bits, brokers: Rows, offline: Rows | None) -> Bits:
    """The mask `found`, without brokers that are `offline` in their row; (n,) or (any, n)."""
    if offline is None:
        return found
    left = found.copy()
    for replicas in offline:
        left &= brokers != replicas
    return left
