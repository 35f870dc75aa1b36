"""Chooses leader and ISR of one partition from its state (Kafka's PartitionChangeBuilder).

The result depends only on the image (KIP-631, KIP-966), so that the next controller can complete
what one controller did not finish. A broker that is fenced, shutting down or unregistered leaves
the ISR, unless no leader would remain in it, and a partition without a leader gets one as soon as a
replica may lead. `leader_acceptor` decides which replicas may lead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.configs.config_resources import allows_unclean_election, min_insync_replicas
from quorate.controller.features.levels import (
    ELIGIBLE_REPLICAS_LEVEL,
    ISR_SHRINK_KEEPS_EPOCH_LEVEL,
    has_eligible_replicas,
    metadata_version,
)
from quorate.controller.partitions.leader_acceptor import online
from quorate.controller.partitions.partition import NO_LEADER, RECOVERING
from quorate.controller.partitions.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from quorate.records.metadata import PartitionChangeRecord
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
    from quorate.controller.partitions.partition import Partition
    from quorate.controller.partitions.rows import Bits, PartitionRows
    from quorate.controller.topics.image import Topic


def needs_election(rows: PartitionRows, acceptor: LeaderAcceptor) -> Bits:
    """A mask of the partitions that may have to change.

    These are partitions whose leader may not lead; partitions with an inactive broker in the ISR,
    if another member of the ISR may lead; and partitions without a leader although a replica may
    lead.
    """
    # Transposed, which takes a quarter of the time.
    isr, replicas = np.ascontiguousarray(rows.isr.T), np.ascontiguousarray(rows.replicas.T)
    leaders, offline = rows.leaders, acceptor.offline(rows)
    is_active = acceptor.is_active(isr)
    is_missing = (isr >= 0) & ~is_active
    has_in_sync: Bits = np.logical_or.reduce(online(is_active, isr, offline), axis=0)
    may_shrink: Bits = has_in_sync & np.logical_or.reduce(is_missing, axis=0)
    may_lead = online(acceptor.is_active(replicas), replicas, offline)
    has_candidate: Bits = has_in_sync | np.logical_or.reduce(may_lead, axis=0)
    is_leaderless: Bits = leaders == NO_LEADER
    is_led_wrongly = ~is_leaderless & ~online(acceptor.is_active(leaders), leaders, offline)
    touched: Bits = is_led_wrongly | may_shrink | (is_leaderless & has_candidate)
    return touched


def partition_change(
    image: MetadataImage, topic: Topic, partition_id: int, acceptor: LeaderAcceptor
) -> PartitionChangeRecord | None:
    """The change of leader and ISR that a partition needs; None if it needs none."""
    partition = image.topics.partitions.get(topic.number, partition_id)
    if partition is None:
        return None
    unclean = allows_unclean_election(image, topic.name)
    choice = _choose(partition, acceptor, allows_unclean=unclean)
    if choice == Choice(partition.leader, partition.isr):
        return None
    return make_record(image, topic, partition_id, partition, choice)


@value_type
class Choice:
    """The chosen leader and ISR of a partition.

    `leaves_isr` says that the leader was out of sync, `is_unclean` that it may lack records.
    """

    leader: int
    isr: tuple[int, ...]
    is_unclean: bool = False
    leaves_isr: bool = False


def _choose(partition: Partition, acceptor: LeaderAcceptor, *, allows_unclean: bool) -> Choice:
    """Choose leader and ISR, given the replicas that may lead.

    The leader stays if it may lead. Otherwise the first replica in sync takes over, or else an
    eligible one (ELR), or else, if the topic permits data loss, any.
    """
    isr = tuple(broker for broker in partition.isr if broker in acceptor.active)
    may_lead = [broker for broker in isr if acceptor.accepts(partition, broker)]
    if partition.leader in may_lead:
        return Choice(partition.leader, isr)
    if may_lead:
        leader = next((broker for broker in partition.replicas if broker in may_lead), may_lead[0])
        return Choice(leader, isr)
    for broker in partition.eligible_leader_replicas:
        # A replica that a reassignment removed may have deleted its data.
        if broker in partition.replicas and acceptor.accepts(partition, broker):
            return Choice(broker, (broker,), leaves_isr=True)
    last_known = partition.last_known_elr
    if not partition.isr and len(last_known) == 1 and acceptor.accepts(partition, last_known[0]):
        # It was the last leader, and no other replica is known to have more records.
        return Choice(last_known[0], last_known, is_unclean=True, leaves_isr=True)
    for broker in partition.replicas if allows_unclean else ():
        if acceptor.accepts(partition, broker):
            return Choice(broker, (broker,), is_unclean=True, leaves_isr=True)
    return Choice(NO_LEADER, partition.isr)


def choose_preferred(partition: Partition, acceptor: LeaderAcceptor) -> Choice:
    """Choose the first replica if it may lead, or else another one, but never uncleanly."""
    first = partition.replicas[0] if partition.replicas else NO_LEADER
    if first in partition.isr and acceptor.accepts(partition, first):
        isr = tuple(broker for broker in partition.isr if broker in acceptor.active)
        return Choice(first, isr)
    return _choose(partition, acceptor, allows_unclean=False)


def choose_unclean(partition: Partition, acceptor: LeaderAcceptor) -> Choice:
    """Choose any replica that may lead, even one that lacks records."""
    return _choose(partition, acceptor, allows_unclean=True)


def make_record(
    image: MetadataImage, topic: Topic, partition_id: int, partition: Partition, choice: Choice
) -> PartitionChangeRecord:
    """The record for a choice."""
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
    """The eligible replicas that remain after one of them becomes leader.

    While fewer replicas are in sync than a write requires, the leader commits nothing that the
    eligible ones lack.
    """
    if choice.is_unclean or not has_eligible_replicas(image.features):
        return ()
    if len(choice.isr) >= min_insync_replicas(image, topic.name, len(partition.replicas)):
        return ()
    return tuple(id_ for id_ in partition.eligible_leader_replicas if id_ not in choice.isr)
