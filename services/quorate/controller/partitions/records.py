"""Converts partition records to partition state and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.errors import ReplayError
from quorate.controller.features.levels import DIRECTORIES_LEVEL, ELIGIBLE_REPLICAS_LEVEL
from quorate.controller.partitions.partition import MIGRATING_DIR, NO_LEADER, Partition
from quorate.controller.partitions.rows import PARTITION_ID_MAX, key_of
from quorate.controller.slices import run_to_end
from quorate.records.ids import TopicId
from quorate.records.metadata import PartitionChangeRecord, PartitionRecord

if TYPE_CHECKING:
    from quorate.controller.image import MetadataDelta
    from quorate.controller.partitions.rows import PartitionRows
    from quorate.controller.slices import Slices
    from quorate.records.ids import DirectoryId
    from quorate.records.metadata import ClearElrRecord

_EPOCH_MAX = 2**31 - 1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
# Partitions that change between two pauses, or parts of all partitions that are searched.
SLICE_PARTITIONS = 32


def partition_record(
    topic_id: TopicId, partition_id: int, partition: Partition, *, level: int
) -> PartitionRecord:
    """The record with the whole state of a partition that this metadata.version can represent."""
    has_directories = level >= DIRECTORIES_LEVEL
    has_eligible = level >= ELIGIBLE_REPLICAS_LEVEL
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories if has_directories else (),
        eligible_leader_replicas=(partition.eligible_leader_replicas if has_eligible else ())
        or None,
        last_known_elr=(partition.last_known_elr if has_eligible else ()) or None,
    )


def replay_partition(delta: MetadataDelta, record: PartitionRecord) -> None:
    """Add a partition, or replace its state. Raises ReplayError for an invalid record."""
    if not 0 <= record.partition_id <= PARTITION_ID_MAX:
        raise ReplayError(
            f"the partition id {record.partition_id} is not between 0 and {PARTITION_ID_MAX}"
        )
    topic = delta.topics.topic(TopicId(record.topic_id))
    old = delta.topics.partition(topic, record.partition_id)
    partition = Partition(
        replicas=record.replicas,
        isr=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        leader_recovery_state=record.leader_recovery_state,
        directories=_directories(record.directories, record.replicas),
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        eligible_leader_replicas=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
    )
    delta.topics.set_partition(topic, record.partition_id, partition, old=old)


def replay_partition_change(delta: MetadataDelta, record: PartitionChangeRecord) -> None:
    """Change the fields that the record has. Raises ReplayError for an unknown partition."""
    topic = delta.topics.topic(TopicId(record.topic_id))
    old = delta.topics.partition(topic, record.partition_id)
    if old is None:
        raise ReplayError(f"topic {topic.name!r} has no partition {record.partition_id} to change")
    new = changed(old, record)
    # A leader of an ISR with other members joined the ISR by the same record.
    has_joined = len(new.isr) > 1 and new.leader in new.isr
    if new.leader not in (old.leader, NO_LEADER, *old.isr) and not has_joined:
        delta.topics.count_election(is_eligible=new.leader in old.eligible_leader_replicas)
    delta.topics.set_partition(topic, record.partition_id, new, old=old)


def changed(old: Partition, record: PartitionChangeRecord) -> Partition:
    """The partition after the change: its epoch always rises, the leader epoch with a leader."""
    replicas = old.replicas if record.replicas is None else record.replicas
    if record.directories is not None:
        directories = _directories(record.directories, replicas)
    else:
        directories = directories_for(old, replicas)
    sets_leader = record.leader != NO_LEADER_CHANGE
    sets_recovery = record.leader_recovery_state != NO_RECOVERY_CHANGE
    return Partition(
        replicas=replicas,
        isr=_changed(old.isr, record.isr),
        leader=record.leader if sets_leader else old.leader,
        leader_epoch=_next(old.leader_epoch) if sets_leader else old.leader_epoch,
        partition_epoch=_next(old.partition_epoch),
        leader_recovery_state=(
            record.leader_recovery_state if sets_recovery else old.leader_recovery_state
        ),
        directories=directories,
        removing_replicas=_changed(old.removing_replicas, record.removing_replicas),
        adding_replicas=_changed(old.adding_replicas, record.adding_replicas),
        eligible_leader_replicas=_changed(
            old.eligible_leader_replicas, record.eligible_leader_replicas
        ),
        last_known_elr=_changed(old.last_known_elr, record.last_known_elr),
    )


def directories_for(old: Partition, replicas: tuple[int, ...]) -> tuple[DirectoryId, ...]:
    """The directories of these replicas, as far as the partition already has them."""
    if replicas == old.replicas:
        return old.directories
    known = dict(zip(old.replicas, old.directories, strict=True))
    return tuple(known.get(replica, MIGRATING_DIR) for replica in replicas)


def replay_clear_elr(delta: MetadataDelta, record: ClearElrRecord) -> None:
    """Clear the eligible leader replicas of one topic, or of all topics without a name."""
    run_to_end(clear_elr_in_slices(delta, record))


def clear_elr_in_slices(delta: MetadataDelta, record: ClearElrRecord) -> Slices[None]:
    """The same with pauses, as there may be many topics."""
    topics = delta.topics
    first, end = 0, None
    if record.topic_name:
        topic_id = topics.ids.get(record.topic_name)
        if topic_id is None:
            raise ReplayError(f"there is no topic {record.topic_name!r} whose ELR could be cleared")
        number = topics.topic(topic_id).number
        first, end = key_of(number, 0), key_of(number + 1, 0)
    looked = 0
    for part in topics.flush().rows.parts_from(first):
        for topic_id, key, old in _with_eligible(part, first, end):
            cleared = replace(
                old,
                partition_epoch=_next(old.partition_epoch),
                eligible_leader_replicas=(),
                last_known_elr=(),
            )
            topic, partition_id = topics.topic(topic_id), key & PARTITION_ID_MAX
            topics.set_partition(topic, partition_id, cleared, old=old)
            looked += 1
            if looked % SLICE_PARTITIONS == 0:
                yield
        if end is not None and part.keys[-1] >= end:
            return
        looked += 1
        if looked % SLICE_PARTITIONS == 0:
            yield


def _with_eligible(
    rows: PartitionRows, low: int, high: int | None
) -> list[tuple[TopicId, int, Partition]]:
    """Partitions with keys from `low` to below `high` that have ELR fields."""
    if not rows.seldom:
        return []
    is_wanted = rows.has_eligible & (rows.keys >= low)
    if high is not None:
        is_wanted &= rows.keys < high
    found = np.flatnonzero(is_wanted)
    places = zip(rows.topics_at(found), rows.keys[found].tolist(), found.tolist(), strict=True)
    return [(topic_id, key, rows.partition(row)) for topic_id, key, row in places]


def _next(epoch: int) -> int:
    """The epoch after this one; it wraps around to the lowest, as in Kafka."""
    return epoch + 1 if epoch < _EPOCH_MAX else -_EPOCH_MAX - 1


def _changed(old: tuple[int, ...], new: tuple[int, ...] | None) -> tuple[int, ...]:
    return old if new is None else new


def _directories(
    given: tuple[DirectoryId, ...], replicas: tuple[int, ...]
) -> tuple[DirectoryId, ...]:
    """The directories as given; for older records without them, the id that Kafka uses then."""
    if not given:
        return (MIGRATING_DIR,) * len(replicas)
    if len(given) != len(replicas):
        raise ReplayError(f"{len(given)} directories for {len(replicas)} replicas")
    return given
