"""Records of requests that Apache Kafka's controller has and the generator does not send.

The generator sends requests to register brokers, to create and delete topics and to alter configs.
A log of a real cluster has more: brokers shrink and expand ISRs (AlterPartition), operators
move partitions (AlterPartitionReassignments), add some (CreatePartitions) and elect preferred
replicas (ElectLeaders), and there are ACLs, quotas, credentials, tokens, producer ids,
registrations of controllers and upgrades (UpdateFeatures). This module derives their records from
the image as Kafka's controller would. They are appended in the same way as Quorate's own decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.controller import Controller
from quorate.controller.decision import Outcome, Proposal
from quorate.controller.features.levels import SUPPORTED_FEATURES, metadata_version
from quorate.controller.partitions.partition import NO_LEADER, UNASSIGNED_DIR, Partition
from quorate.controller.partitions.records import NO_LEADER_CHANGE, partition_record
from quorate.records.metadata import (
    ControllerEndpoint,
    ControllerFeature,
    PartitionChangeRecord,
    RegisterControllerRecord,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from quorate.controller.decision import Decision
    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions.rows import Bits, PartitionRows
    from quorate.records.ids import DirectoryId, TopicId
    from quorate.records.metadata import MetadataRecord, PartitionRecord
    from quorate.records.voters import Voter

_CELLS_TOGETHER = 50_000


class StockController(Controller):
    """Quorate's controller, which also accepts records that other code has decided."""

    def take(self, records: Sequence[MetadataRecord]) -> Decision:
        """Accept `records` as decided. Raises ValueError if they do not fit into one batch."""
        active = self._required()
        proposal = Proposal(metadata_version(active.overlay.view.features))
        if not proposal.add(records):
            raise ValueError(f"{len(records)} records do not fit into a batch")
        return active.apply_outcome(Outcome(proposal, None))


# --- looking for partitions -----------------------------------------------------------------------


def partitions_where(
    image: MetadataImage, condition: Callable[[PartitionRows], Bits]
) -> list[tuple[TopicId, int]]:
    """All partitions for which a condition on the columns holds."""
    found: list[tuple[TopicId, int]] = []
    key = 0
    while (rows := image.topics.partitions.rows.rows_from(key, _CELLS_TOGETHER)) is not None:
        hits = np.flatnonzero(condition(rows))
        found.extend(zip(rows.topics_at(hits), rows.partition_ids[hits].tolist(), strict=True))
        key = int(rows.keys[-1]) + 1
    return found


def is_on(broker: int) -> Callable[[PartitionRows], Bits]:
    """Select partitions with a replica on the broker."""

    def condition(rows: PartitionRows) -> Bits:
        found: Bits = np.logical_or.reduce(rows.replicas == broker, axis=1)
        return found

    return condition


def is_behind(broker: int) -> Callable[[PartitionRows], Bits]:
    """Select partitions with an out-of-sync replica on the broker and a leader on another one."""

    def condition(rows: PartitionRows) -> Bits:
        has: Bits = np.logical_or.reduce(rows.replicas == broker, axis=1)
        in_sync: Bits = np.logical_or.reduce(rows.isr == broker, axis=1)
        led: Bits = (rows.leaders != NO_LEADER) & (rows.leaders != broker)
        return has & ~in_sync & led

    return condition


def is_led_by_another(rows: PartitionRows) -> Bits:
    """Select partitions with a leader that is not the preferred replica."""
    if not rows.width:
        return np.zeros(len(rows), dtype=np.bool_)
    preferred = rows.replicas[:, 0]
    found: Bits = (rows.leaders != NO_LEADER) & (rows.leaders != preferred)
    return found


def each(
    image: MetadataImage, places: Sequence[tuple[TopicId, int]]
) -> Iterator[tuple[TopicId, int, Partition]]:
    """Yield the current state of those partitions that still exist."""
    for topic_id, partition_id in places:
        partition = image.topics.partition(topic_id, partition_id)
        if partition is not None:
            yield topic_id, partition_id, partition


# --- AlterPartition -------------------------------------------------------------------------------


def shrink(
    topic_id: TopicId, partition_id: int, partition: Partition, broker: int
) -> PartitionChangeRecord | None:
    """Remove a lagging follower from the ISR; None if it is not in the ISR or leads."""
    if broker == partition.leader or broker not in partition.isr:
        return None
    isr = tuple(other for other in partition.isr if other != broker)
    return PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id, isr=isr)


def expand(
    topic_id: TopicId, partition_id: int, partition: Partition, able: Collection[int]
) -> PartitionChangeRecord | None:
    """Add all followers in `able` to the ISR; None if that changes nothing.

    If all replicas that a reassignment adds are in the ISR, the reassignment completes.
    """
    if partition.leader == NO_LEADER:
        return None
    missing = tuple(b for b in partition.replicas if b not in partition.isr and b in able)
    isr = (*partition.isr, *missing)
    is_moving = bool(partition.adding_replicas or partition.removing_replicas)
    if is_moving and set(partition.adding_replicas) <= set(isr):
        return _reassigned(topic_id, partition_id, partition, isr)
    if not missing:
        return None
    return PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id, isr=isr)


def _reassigned(
    topic_id: TopicId, partition_id: int, partition: Partition, isr: tuple[int, ...]
) -> PartitionChangeRecord | None:
    gone = set(partition.removing_replicas)
    directories = dict(zip(partition.replicas, partition.directories, strict=True))
    replicas = tuple(broker for broker in partition.replicas if broker not in gone)
    isr = tuple(broker for broker in isr if broker not in gone)
    if not isr:
        return None
    is_led_on = partition.leader in isr
    leader = next((broker for broker in replicas if broker in isr), isr[0])
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        isr=isr,
        leader=NO_LEADER_CHANGE if is_led_on else leader,
        replicas=replicas,
        removing_replicas=() if partition.removing_replicas else None,
        adding_replicas=() if partition.adding_replicas else None,
        directories=tuple(directories[broker] for broker in replicas),
    )


# --- other requests about partitions --------------------------------------------------------------


def reassign(
    image: MetadataImage,
    topic_id: TopicId,
    partition_id: int,
    partition: Partition,
    target: tuple[int, ...],
) -> PartitionChangeRecord | None:
    """AlterPartitionReassignments: `target`, then the replicas to remove; None without change."""
    if partition.adding_replicas or partition.removing_replicas or target == partition.replicas:
        return None
    adding = tuple(broker for broker in target if broker not in partition.replicas)
    removing = tuple(broker for broker in partition.replicas if broker not in target)
    replicas = (*target, *removing)
    known = dict(zip(partition.replicas, partition.directories, strict=True))
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=replicas,
        adding_replicas=adding or None,
        removing_replicas=removing or None,
        directories=tuple(known.get(b) or _directory(image, b) for b in replicas),
    )


def _directory(image: MetadataImage, broker: int) -> DirectoryId:
    log_dirs = image.brokers.by_id[broker].registration.log_dirs
    return log_dirs[0] if len(log_dirs) == 1 else UNASSIGNED_DIR


def prefer(
    topic_id: TopicId, partition_id: int, partition: Partition, active: Collection[int]
) -> PartitionChangeRecord | None:
    """ElectLeaders, and the controller's own rebalancing: the preferred replica leads again."""
    preferred = partition.replicas[0]
    if preferred == partition.leader or preferred not in partition.isr or preferred not in active:
        return None
    return PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id, leader=preferred)


def grow(
    image: MetadataImage, topic_id: TopicId, first: int, assignments: Sequence[tuple[int, ...]]
) -> list[PartitionRecord]:
    """CreatePartitions: more partitions of an existing topic, on active brokers."""
    level = metadata_version(image.features)
    return [
        partition_record(
            topic_id,
            partition_id,
            Partition(
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=tuple(_directory(image, broker) for broker in replicas),
            ),
            level=level,
        )
        for partition_id, replicas in enumerate(assignments, first)
    ]


# --- controllers ----------------------------------------------------------------------------------


def controller_registration(voter: Voter, incarnation_id: bytes) -> RegisterControllerRecord:
    """The registration of a controller at the active one when it starts (KIP-919)."""
    return RegisterControllerRecord(
        controller_id=voter.key.node_id,
        incarnation_id=incarnation_id,
        end_points=tuple(
            ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=0)
            for e in voter.endpoints
        ),
        features=tuple(
            ControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_level,
                max_supported_version=feature.max_level,
            )
            for feature in SUPPORTED_FEATURES
        ),
    )
