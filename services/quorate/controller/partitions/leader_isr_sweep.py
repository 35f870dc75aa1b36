"""Updates leaders and ISRs of all partitions after a broker change, one time slice at a time.

A broker change may concern every partition of the cluster, and an event-loop iteration may not take
that long. So the record about the broker is decided immediately, together with the first slice. A
cursor continues through the other topics; each slice is an ordinary decision, and other decisions
may come in between. Leaders are always chosen from the newest image: a broker that leaves during a
sweep is considered in the rest of it, and another sweep follows for the partitions before that.

This state is not in the log. A partition that was not reached yet can be recognized by a leader or
an in-sync replica that is not active, and the next active controller examines all partitions.
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
# replayed as columns. Partitions that are decided one by one are unpacked, and may need no change.
# The rest is only compared; the last limit corresponds to four thousand rows with three replicas.
RECORDS_SLICE: Final = 1024
EXAMINED_SLICE: Final = 128
CELLS_SLICE: Final = 49_152


@value_type
class SweepCursor:
    """The position of a sweep, among all partitions in the order of their keys.

    Columns are compared next from `key` on, up to `end`, the first key of topics created since.
    `found` are the keys that the last comparison found, of which `taken` were examined: each
    partition may have changed since.
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
    """The remaining sweeps.

    `brokers` are those for which the current sweep was started, `later` those for which another one
    has to follow; `again` is set if one has to follow without a broker change. `is_sweep` marks the
    first sweep of an active controller, which concerns all brokers.
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
        """True if some partitions may not yet reflect the last change of that broker."""
        return self.is_sweep or broker_id in self.brokers or broker_id in self.later

    def apply(self, soft: VolatileState) -> None:
        """Replace the state. A `VolatileChange`."""
        soft.put(self)

    def with_later(self, broker_ids: Iterable[int]) -> LeaderIsrSweep:
        """The same, followed by another sweep for those brokers."""
        return replace(self, later=self.later.union(broker_ids))

    def restarted(self, image: MetadataImage) -> LeaderIsrSweep:
        """Begin the next sweep."""
        # Only a key: a reference to the image would keep all its partitions until the sweep ends,
        # and free those that changed, perhaps all, in a single event-loop iteration.
        cursor = SweepCursor(end=key_of(image.topics.next_topic_number, 0))
        brokers = self.later
        return replace(self, cursor=cursor, brokers=brokers, later=frozenset(), again=False)


@value_type
class PassWanted:
    """Requests a sweep over all partitions, since more replicas may lead than before."""

    def apply(self, soft: VolatileState) -> None:
        """Start a sweep after the current one, if any. A `VolatileChange`."""
        soft.put(replace(soft.of(LeaderIsrSweep), again=True))


def start_sweep(
    context: Context,
    records: Iterable[MetadataRecord],
    broker_ids: Iterable[int],
    active: frozenset[int],
) -> tuple[Proposal, LeaderIsrSweep]:
    """Change the state of brokers, then leaders and ISRs within the first slice.

    The records about the brokers come first: any active controller can derive the rest from them.
    `active` are the brokers that will be active after they are replayed. Returns the records and
    the rest of the sweep.
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
        # No partition is without a leader, so more replicas that may lead change nothing.
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
"""Continues the sweeps, one slice at a time."""


def _go_on(
    leader_isr_sweep: LeaderIsrSweep,
    image: MetadataImage,
    acceptor: LeaderAcceptor,
    proposal: Proposal,
) -> LeaderIsrSweep:
    """One slice of the current sweep."""
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
        # It does not fit into the batch any more; the next slice begins here.
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
