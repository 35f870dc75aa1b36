"""Who leads a partition when brokers come and go, and who stays in sync (KIP-631, KIP-966).

All of it is derived from the image: a broker that is fenced, shutting down or gone leaves the ISR
unless nobody would remain, and a partition without a leader gets one as soon as somebody may lead.
So what one controller did not come to is found by the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.broker_sets import is_among
from quorate.controller.configs.resources import allows_unclean_election, min_insync_replicas
from quorate.controller.features.levels import (
    ELIGIBLE_REPLICAS_LEVEL,
    ISR_SHRINK_KEEPS_EPOCH_LEVEL,
    has_eligible_replicas,
    metadata_version,
)
from quorate.controller.partition_records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from quorate.controller.partitions import NO_LEADER, RECOVERING
from quorate.records.metadata import PartitionChangeRecord
from quorate.records.value import value

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.image import MetadataImage
    from quorate.controller.partition_rows import Bits, PartitionRows
    from quorate.controller.partitions import Partition
    from quorate.controller.topics.image import Topic


def needs_look(active: frozenset[int]) -> Callable[[PartitionRows], Bits]:
    """Which partitions may have to change when these brokers may lead, as columns.

    Those whose leader may not lead, those with a replica out of sync that is listed in sync beside
    others that are, and those without a leader although somebody may lead.
    """
    is_active = is_among(active)

    def is_touched(rows: PartitionRows) -> Bits:
        is_in_sync = is_active(rows.isr)
        is_missing = (rows.isr >= 0) & ~is_in_sync
        has_in_sync: Bits = np.logical_or.reduce(is_in_sync, axis=1)
        may_shrink: Bits = has_in_sync & np.logical_or.reduce(is_missing, axis=1)
        has_candidate: Bits = has_in_sync | np.logical_or.reduce(is_active(rows.replicas), axis=1)
        is_leaderless: Bits = rows.leaders == NO_LEADER
        is_led_wrongly: Bits = ~is_leaderless & ~is_active(rows.leaders)
        touched: Bits = is_led_wrongly | may_shrink | (is_leaderless & has_candidate)
        return touched

    return is_touched


def change_of(
    image: MetadataImage, topic: Topic, partition_id: int, active: frozenset[int]
) -> PartitionChangeRecord | None:
    """What gives a partition the leader and the ISR that it should have; None when it has them."""
    partition = image.topics.partitions.get(topic.number, partition_id)
    if partition is None:
        return None
    unclean = allows_unclean_election(image, topic.name)
    choice = _choose(partition, active, allows_unclean=unclean)
    if choice == Choice(partition.leader, partition.isr):
        return None
    return make_record(image, topic, partition_id, partition, choice)


@value
class Choice:
    """The leader that a partition is to have, and the replicas in sync.

    `leaves_isr` says that the leader was out of sync, `is_unclean` that it may lack records.
    """

    leader: int
    isr: tuple[int, ...]
    is_unclean: bool = False
    leaves_isr: bool = False


def _choose(partition: Partition, active: frozenset[int], *, allows_unclean: bool) -> Choice:
    """Who leads and who is in sync, given who may lead.

    The leader stays while it can. Otherwise the first replica in sync takes over, or else one that
    is eligible although out of sync, or else, where the topic allows data to be lost, any.
    """
    isr = tuple(broker for broker in partition.isr if broker in active)
    if partition.leader in isr:
        return Choice(partition.leader, isr)
    if isr:
        leader = next((broker for broker in partition.replicas if broker in isr), isr[0])
        return Choice(leader, isr)
    for broker in partition.eligible_leader_replicas:
        # One that a reassignment took away may have deleted its data.
        if broker in active and broker in partition.replicas:
            return Choice(broker, (broker,), leaves_isr=True)
    last_known = partition.last_known_elr
    if not partition.isr and len(last_known) == 1 and last_known[0] in active:
        # It led last, and no other replica is known to have more.
        return Choice(last_known[0], last_known, is_unclean=True, leaves_isr=True)
    for broker in partition.replicas if allows_unclean else ():
        if broker in active:
            return Choice(broker, (broker,), is_unclean=True, leaves_isr=True)
    return Choice(NO_LEADER, partition.isr)


def choose_preferred(partition: Partition, active: frozenset[int]) -> Choice:
    """Have the first replica lead if it may, or else another one, but never uncleanly."""
    first = partition.replicas[0] if partition.replicas else NO_LEADER
    if first in partition.isr and first in active:
        isr = tuple(broker for broker in partition.isr if broker in active)
        return Choice(first, isr)
    return _choose(partition, active, allows_unclean=False)


def choose_unclean(partition: Partition, active: frozenset[int]) -> Choice:
    """Have any active replica lead, even one that may lack records."""
    return _choose(partition, active, allows_unclean=True)


def make_record(
    image: MetadataImage, topic: Topic, partition_id: int, partition: Partition, choice: Choice
) -> PartitionChangeRecord:
    """Write a choice as a record."""
    level = metadata_version(image.features)
    shrinks = choice.isr != partition.isr
    # Before 3.6 a broker noticed that its ISR had shrunk only by a new leader epoch (KAFKA-15021).
    sets_leader = choice.leader != partition.leader or (
        shrinks and level < ISR_SHRINK_KEEPS_EPOCH_LEVEL
    )
    eligible = last_known = None
    if level >= ELIGIBLE_REPLICAS_LEVEL:
        if choice.leaves_isr and partition.eligible_leader_replicas:
            eligible = _still_eligible(image, topic, partition, choice)
        if sets_leader and choice.leader != NO_LEADER and partition.last_known_elr:
            last_known = ()
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic.topic_id,
        isr=choice.isr if shrinks else None,
        leader=choice.leader if sets_leader else NO_LEADER_CHANGE,
        leader_recovery_state=RECOVERING if choice.is_unclean else NO_RECOVERY_CHANGE,
        eligible_leader_replicas=eligible,
        last_known_elr=last_known,
    )


def _still_eligible(
    image: MetadataImage, topic: Topic, partition: Partition, choice: Choice
) -> tuple[int, ...]:
    """The eligible replicas that are left when one of them leads.

    While fewer are in sync than a write needs, the leader commits nothing that they lack.
    """
    if choice.is_unclean or not has_eligible_replicas(image.features):
        return ()
    if len(choice.isr) >= min_insync_replicas(image, topic.name, len(partition.replicas)):
        return ()
    return tuple(id_ for id_ in partition.eligible_leader_replicas if id_ not in choice.isr)
