"""Updates leaders and ISRs of all partitions after a broker change, one time slice at a time.

One decision may concern every partition of the cluster, and an event-loop iteration may not last
that long. So the record about the broker is decided immediately, with the first slice; a cursor
continues through the other topics, and each slice is an ordinary decision, between which others may
come. Leaders are always chosen from the newest image: a broker that leaves during a sweep counts
for the rest of it, and another sweep follows for what lay before.

Nothing of this is in the log. A partition that was not reached yet can be recognized by a leader or
a replica in sync that is not active, and the next active controller examines all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.controller.decision import Outcome, Proposal
from quorate.controller.features.levels import metadata_version
from quorate.controller.partitions.bulk_leader_election import elect, rows_max
from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.leader_election import needs_election, partition_change
from quorate.controller.partitions.rows import key_of
from quorate.controller.periodic_task import PeriodicTask
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.controller.decision import Context, ControllerSettings, VolatileState
    from quorate.controller.image import MetadataImage, View
    from quorate.records.metadata import MetadataRecord

# Limits of one slice; a few milliseconds each. Changes that are decided together are encoded and
# replayed as columns; partitions that are decided one by one are unpacked, and may turn out to be
# as they should; the rest is only compared: four thousand rows with three replicas have so many
# numbers.
RECORDS_SLICE: Final = 1024
EXAMINED_SLICE: Final = 128
CELLS_SLICE: Final = 49_152


@value_type
class SweepCursor:
    """The position of a sweep, among all partitions in the order of their keys.

    Columns are compared next from `key` on, up to `end`, where the topics begin that were made
    since. `found` are the keys that the last comparison found, of which `taken` were examined:
    each partition may have changed since.
    """

    end: int
    key: int = 0
    found: tuple[int, ...] = ()
    taken: int = 0
    is_last: bool = False

    @property
    def is_at_end(self) -> bool:
        return self.is_last and self.taken == len(self.found)


@value_type
class LeaderIsrSweep:
    """The rest of the sweeps.

    `brokers` are those for which the sweep in progress was begun, `later` those for which another
    one has to follow; `again` is set if one has to follow without a broker change. `is_sweep` marks
    the first sweep of an active controller, which concerns all brokers.
    """

    cursor: SweepCursor | None = None
    brokers: frozenset[int] = frozenset()
    later: frozenset[int] = frozenset()
    again: bool = False
    is_sweep: bool = False

    @property
    def is_done(self) -> bool:
        """True if every partition has the leader and the ISR that it should have."""
        return self.cursor is None and not (self.later or self.again or self.is_sweep)

    def may_affect(self, broker_id: int) -> bool:
        """True if partitions may still be as if that broker had not come or gone."""
        return self.is_sweep or broker_id in self.brokers or broker_id in self.later

    def apply(self, soft: VolatileState) -> None:
        """Replace the state. A `VolatileChange`."""
        soft.put(self)

    def with_later(self, broker_ids: Iterable[int]) -> LeaderIsrSweep:
        """The same, followed by a sweep for those brokers."""
        return replace(self, later=self.later.union(broker_ids))

    def restarted(self, image: MetadataImage) -> LeaderIsrSweep:
        """Begin the next sweep."""
        # A key alone: otherwise the present partitions would all be kept until the sweep ends, and
        # those that changed since, perhaps all, be freed in a single event-loop iteration.
        cursor = SweepCursor(end=key_of(image.topics.next_topic_number, 0))
        brokers = self.later
        return replace(self, cursor=cursor, brokers=brokers, later=frozenset(), again=False)


@value_type
class PassWanted:
    """All partitions have to be examined, since more replicas may lead than before."""

    def apply(self, soft: VolatileState) -> None:
        """Start a sweep after the one in progress, if any. A `VolatileChange`."""
        soft.put(replace(soft.of(LeaderIsrSweep), again=True))


def start_sweep(
    context: Context,
    records: Iterable[MetadataRecord],
    broker_ids: Iterable[int],
    active: frozenset[int],
) -> tuple[Proposal, LeaderIsrSweep]:
    """Change the state of brokers, then leaders and ISRs within one slice.

    The records about the brokers come first: the rest follows from them, on any active controller.
    `active` are the brokers that are active once they are replayed. The rest of the sweep is
    returned with the records.
    """
    proposal = Proposal(metadata_version(context.view.features))
    proposal.add(tuple(records))
    settling = context.soft.of(LeaderIsrSweep).with_later(broker_ids)
    if settling.cursor is None and not settling.is_sweep:
        image = context.freeze()
        acceptor = LeaderAcceptor(image.brokers, active)
        settling = _go_on(settling.restarted(image), image, acceptor, proposal)
    return proposal, settling


def next_slice(context: Context) -> Outcome | None:
    """The next slice of the sweep; None if none is left."""
    settling = context.soft.of(LeaderIsrSweep)
    if settling.is_done:
        return None
    image = context.freeze()
    proposal = Proposal(metadata_version(image.features))
    if settling.again and not image.topics.tally.offline:
        # No partition waits for a leader, so that none could have another one.
        return Outcome(proposal, None, (replace(settling, again=False),))
    if settling.cursor is None:
        settling = settling.restarted(image)
    acceptor = LeaderAcceptor.of(image.brokers)
    return Outcome(proposal, None, (_go_on(settling, image, acceptor, proposal),))


def _begin(image: MetadataImage, _settings: ControllerSettings, _now_ms: int) -> LeaderIsrSweep:
    return LeaderIsrSweep(is_sweep=len(image.topics.by_id) > 0)


def _wake_at_ms(soft: VolatileState, _view: View) -> int | None:
    return None if soft.of(LeaderIsrSweep).is_done else 0


SWEEP_TASK: Final = PeriodicTask(begin=_begin, wake_at_ms=_wake_at_ms, expire=next_slice)
"""Passes go on by themselves, a slice at a time."""


def _go_on(
    leader_isr_sweep: LeaderIsrSweep,
    image: MetadataImage,
    acceptor: LeaderAcceptor,
    proposal: Proposal,
) -> LeaderIsrSweep:
    """One slice of the sweep in progress."""
    cursor = leader_isr_sweep.cursor
    assert cursor is not None, "a pass is under way"
    if cursor.taken == len(cursor.found):
        cursor = _compare(cursor, image, acceptor)
    level, topics = metadata_version(image.features), image.topics
    keys = np.array(cursor.found[cursor.taken : cursor.taken + RECORDS_SLICE], np.int64)
    all_rows = rows = topics.partitions.rows.rows_at(keys)
    rows = rows.view(0, min(len(rows), rows_max(rows.width)))
    elected, alone = elect(rows, acceptor, level)
    if len(alone) > EXAMINED_SLICE:
        rows = rows.view(0, int(alone[EXAMINED_SLICE]))
        elected, alone = elect(rows, acceptor, level)
    if elected is not None and not proposal.add_bulk(elected):
        # In addition to what is in the batch already; the next slice begins here.
        return leader_isr_sweep
    partition_ids = rows.partition_ids[alone].tolist()
    for topic_id, partition_id in zip(rows.topics_at(alone), partition_ids, strict=True):
        record = partition_change(image, topics.by_id[topic_id], partition_id, acceptor)
        if record is not None:
            proposal.add((record,))
    taken = len(keys)
    if len(rows) < len(all_rows):
        taken = int(keys.searchsorted(all_rows.keys[len(rows)]))
    cursor = replace(cursor, taken=cursor.taken + taken)
    if cursor.is_at_end:
        return replace(leader_isr_sweep, cursor=None, brokers=frozenset(), is_sweep=False)
    return replace(leader_isr_sweep, cursor=cursor)


def _compare(cursor: SweepCursor, image: MetadataImage, acceptor: LeaderAcceptor) -> SweepCursor:
    """Find the next partitions that may have to change."""
    rows = image.topics.partitions.rows.rows_from(cursor.key, CELLS_SLICE)
    if rows is None or rows.keys[0] >= cursor.end:
        return replace(cursor, found=(), taken=0, is_last=True)
    key = int(rows.keys[-1]) + 1
    return SweepCursor(
        end=cursor.end,
        key=key,
        found=tuple(rows.keys[needs_election(rows, acceptor)].tolist()),
        is_last=key >= min(cursor.end, image.topics.partitions.rows.end),
    )
