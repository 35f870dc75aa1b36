"""Chooses leaders and ISRs of many partitions together, on columns.

It gives the same result as `leader_election` does for one partition, for all ordinary rows: those
where a replica in sync may lead, or no replica at all. Other rows depend on more than their
columns, such as a topic's permission to lose data, and are decided one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from quorate.controller.decision import Bulk
from quorate.controller.features.levels import ISR_SHRINK_KEEPS_EPOCH_LEVEL
from quorate.controller.partitions.leader_acceptor import online
from quorate.controller.partitions.partition import NO_LEADER
from quorate.controller.partitions.record_columns import PartitionChangeColumns
from quorate.controller.partitions.record_encoder import change_values
from quorate.controller.partitions.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.image import MetadataDelta
    from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
    from quorate.controller.partitions.rows import Bits, Index, PartitionRows, Rows

# Each replica is compared with each in-sync replica: this many comparisons take a millisecond.
COMPARED_MAX: Final = 1_000_000


@value_type
class BulkElection(Bulk):
    """A decision on many partitions: rows before and after it, and the records' values."""

    old: PartitionRows
    new: PartitionRows
    values: Sequence[bytes]

    def replay(self, delta: MetadataDelta) -> None:
        """Apply the whole decision."""
        delta.topics.put_rows(self.new, self.old)

    def takes_from(self, broker_id: int) -> bool:
        """True if a partition that the broker led gets another leader, or none."""
        is_given = self.new.leader_epochs != self.old.leader_epochs
        return bool(np.any(is_given & (self.old.leaders == broker_id)))


class ElectionChoices(NamedTuple):
    """For each row the leader that it should have and the ISR members that should stay."""

    leaders: Rows
    stays: Bits
    # Mask of the rows that have to be decided one by one.
    is_alone: Bits


def rows_max(width: int) -> int:
    """The number of rows of this width that may be processed without yielding."""
    return max(1, COMPARED_MAX // max(1, width * width))


def elect(
    rows: PartitionRows, acceptor: LeaderAcceptor, level: int
) -> tuple[BulkElection | None, Index]:
    """Give rows the leaders and ISRs that they should have.

    `rows` are at most `rows_max`. The second value are the rows to be decided one by one.
    """
    choices = _choose(rows, acceptor)
    sizes = np.count_nonzero(choices.stays, axis=1).astype(np.int32)
    shrinks = (sizes > 0) & (sizes != rows.isr_sizes) & ~choices.is_alone
    elects = (choices.leaders != rows.leaders) & ~choices.is_alone
    changing = np.flatnonzero(shrinks | elects)
    alone = np.flatnonzero(choices.is_alone)
    if not len(changing):
        return None, alone
    old, shrinks, sizes = rows.taken(changing), shrinks[changing], sizes[changing]
    # Before 3.6 a broker noticed that its ISR had shrunk only by a new leader epoch (KAFKA-15021).
    sets_leader = elects[changing] | (shrinks & (level < ISR_SHRINK_KEEPS_EPOCH_LEVEL))
    changes = PartitionChangeColumns(
        topics=old.topics,
        partition_ids=old.partition_ids,
        leaders=np.where(sets_leader, choices.leaders[changing], NO_LEADER_CHANGE).astype(np.int32),
        recovery=np.full(len(changing), NO_RECOVERY_CHANGE, np.int32),
        isr_sizes=np.where(shrinks, sizes, -1).astype(np.int32),
        isr=closed_up(old.isr, choices.stays[changing]),
    )
    return BulkElection(old, changes.applied(old), change_values(changes, level)), alone


def elect_preferred(
    rows: PartitionRows, acceptor: LeaderAcceptor, level: int, records_max: int
) -> tuple[BulkElection | None, int]:
    """Elect the first replicas where they are in sync and another replica leads.

    The second value is the number of rows examined; it stops after `records_max` changes.
    """
    changing = np.flatnonzero(lacks_preferred(rows, acceptor) & ~rows.has_last_epoch)
    if not len(changing):
        return None, len(rows)
    count = len(rows) if len(changing) <= records_max else int(changing[records_max])
    old = rows.taken(changing[:records_max])
    changes = PartitionChangeColumns(
        topics=old.topics,
        partition_ids=old.partition_ids,
        leaders=old.replicas[:, 0].copy(),
        recovery=np.full(len(old), NO_RECOVERY_CHANGE, np.int32),
        isr_sizes=np.full(len(old), -1, np.int32),
        isr=old.isr[:, :0],
    )
    return BulkElection(old, changes.applied(old), change_values(changes, level)), count


def lacks_preferred(rows: PartitionRows, acceptor: LeaderAcceptor) -> Bits:
    """A mask of the rows whose first replica may lead, but does not."""
    if not rows.width:
        return np.zeros(len(rows), np.bool_)
    first, leaders = rows.replicas[:, 0], rows.leaders
    is_in_sync = (rows.isr == first[:, None]).any(axis=1)
    may_lead = acceptor.may_lead(rows, first)
    lacks: Bits = (leaders != first) & (leaders != NO_LEADER) & may_lead & is_in_sync
    return lacks


def _choose(rows: PartitionRows, acceptor: LeaderAcceptor) -> ElectionChoices:
    isr, replicas, leaders = rows.isr, rows.replicas, rows.leaders
    offline = acceptor.offline(rows)
    stays = acceptor.is_active(isr)
    may_lead = online(stays.T, isr.T, offline).T
    has_any: Bits = np.logical_or.reduce(may_lead, axis=1)
    if offline is not None:
        # The ISR stays as it is if none of its members may lead.
        stays = np.logical_and(stays, has_any[:, None])
    candidates = online(acceptor.is_active(replicas.T), replicas.T, offline)
    # An eligible replica may lead, or any replica if data may be lost.
    is_alone: Bits = np.logical_and(~has_any, candidates.any(axis=0))
    is_alone |= rows.has_last_epoch
    if rows.seldom:
        is_alone = np.logical_or(is_alone, rows.has_eligible)
    leads_on = (may_lead & (isr == leaders[:, None])).any(axis=1)
    # The first of the replicas that is in the ISR and may lead, or else the first such ISR member.
    in_isr = ((replicas[:, :, None] == isr[:, None, :]) & may_lead[:, None, :]).any(axis=2)
    first_replica = _first(replicas, in_isr)
    elected = np.where(in_isr.any(axis=1), first_replica, _first(isr, may_lead))
    found = np.where(leads_on, leaders, np.where(has_any, elected, NO_LEADER))
    return ElectionChoices(found.astype(np.int32), stays, is_alone)


def _first(brokers: Rows, is_wanted: Bits) -> Rows:
    """The first broker in each row that is wanted; undefined in rows without one."""
    if not brokers.shape[1]:
        return np.full(len(brokers), NO_LEADER, np.int32)
    found: Rows = brokers[np.arange(len(brokers)), is_wanted.argmax(axis=1)]
    return found


def closed_up(isr: Rows, stays: Bits) -> Rows:
    """The ISR members that stay, in order, padded with -1."""
    order = np.argsort(~stays, axis=1, kind="stable")
    moved: Rows = np.take_along_axis(np.where(stays, isr, np.int32(-1)), order, axis=1)
    return moved
