"""Who leads a partition when brokers come and go, and who stays in sync (KIP-631, KIP-966).

All of it is derived from the image: a broker that is fenced, shutting down or gone leaves the ISR
unless nobody would remain, and a partition without a leader gets one as soon as somebody may lead.
So a change that is too large for one batch is simply asked for again after the first part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.configs import allows_unclean_election
from quorate.controller.features import (
    ELIGIBLE_REPLICAS_LEVEL,
    ISR_SHRINK_KEEPS_EPOCH_LEVEL,
    metadata_version,
)
from quorate.controller.partition_records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from quorate.controller.partitions import NO_LEADER, RECOVERING
from quorate.records.metadata import PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.controller.image import MetadataImage, Topic
    from quorate.controller.partitions import Bits, Chunk, Partition, Rows
    from quorate.records.ids import TopicId


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    """Whether the broker leads at least one partition."""
    return any(
        topic.partitions.select(lambda chunk: chunk.leaders == broker_id)
        for topic in image.topics.values()
    )


def changes_without(
    image: MetadataImage, active: frozenset[int], broker_id: int
) -> Iterator[PartitionChangeRecord]:
    """What takes a broker that is not in `active` out of leaderships and ISRs."""

    def is_touched(chunk: Chunk) -> Bits:
        in_sync: Bits = (chunk.isr == broker_id).any(axis=1)
        leads: Bits = chunk.leaders == broker_id
        return leads | (in_sync & (chunk.isr_sizes > 1))

    return _changes(image, active, is_touched)


def changes_with(
    image: MetadataImage, active: frozenset[int], broker_id: int
) -> Iterator[PartitionChangeRecord]:
    """What gives leaders to partitions that waited for a broker that is in `active` now."""

    def is_touched(chunk: Chunk) -> Bits:
        has_replica: Bits = (chunk.replicas == broker_id).any(axis=1)
        is_leaderless: Bits = chunk.leaders == NO_LEADER
        return is_leaderless & has_replica

    return _changes(image, active, is_touched)


def changes_for_all(
    image: MetadataImage, active: frozenset[int]
) -> Iterator[PartitionChangeRecord]:
    """What a predecessor as active controller may have left undone."""
    # A last id that no broker has keeps every place that is looked up inside the array.
    ids = np.array([*sorted(active), np.iinfo(np.int32).max], dtype=np.int32)

    def is_active(brokers: Rows) -> Bits:
        return np.equal(np.take(ids, np.searchsorted(ids, brokers)), brokers)

    def is_touched(chunk: Chunk) -> Bits:
        is_missing = (chunk.isr >= 0) & ~is_active(chunk.isr)
        out_of_sync: Bits = np.logical_or.reduce(is_missing, axis=1)
        return chunk.present & (~is_active(chunk.leaders) | (out_of_sync & (chunk.isr_sizes > 1)))

    return _changes(image, active, is_touched)


def _changes(
    image: MetadataImage, active: frozenset[int], is_touched: Callable[[Chunk], Bits]
) -> Iterator[PartitionChangeRecord]:
    """The changes of all partitions selected, by topic name: maps have no order of their own."""
    touched: list[tuple[str, Topic, list[int]]] = []
    for topic in image.topics.values():
        partition_ids = topic.partitions.select(is_touched)
        if partition_ids:
            touched.append((topic.name, topic, partition_ids))
    level = metadata_version(image.features)
    for name, topic, partition_ids in sorted(touched, key=lambda item: item[0]):
        unclean = allows_unclean_election(image, name)
        for partition_id, partition in topic.partitions.pick(partition_ids):
            choice = _choose(partition, active, allows_unclean=unclean)
            if choice != _Choice(partition.leader, partition.isr):
                yield _record(topic.topic_id, partition_id, partition, choice, level)


@dataclass(frozen=True, slots=True)
class _Choice:
    leader: int
    isr: tuple[int, ...]
    is_unclean: bool = False
    leaves_isr: bool = False


def _choose(partition: Partition, active: frozenset[int], *, allows_unclean: bool) -> _Choice:
    """Who leads and who is in sync, given who may lead.

    The leader stays while it can. Otherwise the first replica in sync takes over, or else one that
    is eligible although out of sync, or else, where the topic allows data to be lost, any.
    """
    isr = tuple(broker for broker in partition.isr if broker in active)
    if partition.leader in isr:
        return _Choice(partition.leader, isr)
    if isr:
        leader = next((broker for broker in partition.replicas if broker in isr), isr[0])
        return _Choice(leader, isr)
    for broker in partition.eligible_leader_replicas:
        if broker in active:
            return _Choice(broker, (broker,), leaves_isr=True)
    for broker in partition.replicas if allows_unclean else ():
        if broker in active:
            return _Choice(broker, (broker,), is_unclean=True, leaves_isr=True)
    return _Choice(NO_LEADER, partition.isr)


def _record(
    topic_id: TopicId, partition_id: int, partition: Partition, choice: _Choice, level: int
) -> PartitionChangeRecord:
    shrinks = choice.isr != partition.isr
    # Before 3.6 a broker noticed that its ISR had shrunk only by a new leader epoch (KAFKA-15021).
    sets_leader = choice.leader != partition.leader or (
        shrinks and level < ISR_SHRINK_KEEPS_EPOCH_LEVEL
    )
    # Once somebody outside the ISR leads, the others that were eligible may lack what it accepts.
    clears = choice.leaves_isr and level >= ELIGIBLE_REPLICAS_LEVEL
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        isr=choice.isr if shrinks else None,
        leader=choice.leader if sets_leader else NO_LEADER_CHANGE,
        leader_recovery_state=RECOVERING if choice.is_unclean else NO_RECOVERY_CHANGE,
        eligible_leader_replicas=() if clears and partition.eligible_leader_replicas else None,
        last_known_elr=() if clears and partition.last_known_elr else None,
    )
