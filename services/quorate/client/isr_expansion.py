"""Finds the replicas that leaders add back to their ISRs, with AlterPartition.

This is for leaders whose replicas are in sync as soon as their brokers are active. A leader that
was elected uncleanly first reports that it has recovered, with an ISR of itself alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.partitions.broker_sets import membership_test
from quorate.controller.partitions.partition import RECOVERED
from quorate.controller.partitions.rows import PARTITION_ID_MAX, RECOVERY
from quorate.controller.replication.messages import IsrMember, PartitionAlteration
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.controller.brokers.image import Brokers
    from quorate.controller.partitions.partition import Partition
    from quorate.controller.partitions.rows import PartitionRows
    from quorate.records.ids import TopicId


@value_type
class WantedAlteration:
    """A change of one partition, with the leader that requests it."""

    leader: int
    topic_id: TopicId
    alteration: PartitionAlteration


class IsrExpansion:
    """Finds the changes that these leaders request, given the registered brokers."""

    def __init__(self, brokers: Brokers, leaders: Iterable[int]) -> None:
        """Inactive leaders are left out: the controller rejects an ISR with them."""
        self._brokers = brokers
        self._is_led = membership_test(brokers.active.intersection(leaders))
        self._is_active = membership_test(brokers.active)

    def wanted(self, rows: PartitionRows) -> Iterator[WantedAlteration]:
        """Yield the changes that leaders want of these partitions, in their order."""
        led = np.flatnonzero(self._is_led(rows.leaders))
        active = np.count_nonzero(self._is_active(rows.replicas[led]), axis=1)
        in_sync = np.count_nonzero(self._is_active(rows.isr[led]), axis=1)
        found = led[(active > in_sync) | (rows.values[led, RECOVERY] != RECOVERED)]
        for row, topic_id in zip(found.tolist(), rows.topics_at(found), strict=True):
            partition = rows.partition(row)
            isr = self._isr_of(partition)
            if isr is not None:
                partition_id = int(rows.keys[row]) & PARTITION_ID_MAX
                alteration = PartitionAlteration(
                    partition_index=partition_id,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=partition.partition_epoch,
                    new_isr=tuple(self._member(broker_id) for broker_id in isr),
                    leader_recovery_state=RECOVERED,
                )
                yield WantedAlteration(partition.leader, topic_id, alteration)

    def _isr_of(self, partition: Partition) -> tuple[int, ...] | None:
        """The ISR to request, or None if nothing changes."""
        if partition.leader_recovery_state != RECOVERED:
            return (partition.leader,)
        active = self._brokers.active
        back = [
            broker_id
            for broker_id in dict.fromkeys(partition.replicas)
            if broker_id in active and broker_id not in partition.isr
        ]
        if not back:
            return None
        # An inactive member would have the request rejected; the controller removes it itself.
        return (*(broker_id for broker_id in partition.isr if broker_id in active), *back)

    def _member(self, broker_id: int) -> IsrMember:
        return IsrMember(broker_id, self._brokers.by_id[broker_id].registration.broker_epoch)
