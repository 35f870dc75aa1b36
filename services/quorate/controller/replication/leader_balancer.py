"""Returns leadership to the first replicas (`auto.leader.rebalance.enable`).

After a broker restarts, other brokers lead the partitions that it led. At each interval the first
replicas that are in sync get leadership back, one time slice at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.controller.decision import Outcome, Proposal
from quorate.controller.features.levels import metadata_version
from quorate.controller.partitions.bulk_leader_election import elect_preferred
from quorate.controller.partitions.leader_acceptor import LeaderAcceptor
from quorate.controller.partitions.leader_isr_sweep import CELLS_SLICE, RECORDS_SLICE
from quorate.controller.periodic_task import PeriodicTask
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from quorate.controller.decision import Context, ControllerSettings, VolatileState
    from quorate.controller.image import MetadataImage, View


@value_type
class Balancing:
    """The time of the next sweep, None for never, and the key at which the current one resumes."""

    interval_ms: int
    due_ms: int | None
    key: int | None = None

    def apply(self, soft: VolatileState) -> None:
        """Replace the state. A `VolatileChange`."""
        soft.put(self)


def decide_balance(context: Context) -> Outcome | None:
    """The next slice of a sweep that is due; None if none is."""
    balancing = context.soft.of(Balancing)
    key = balancing.key
    if key is None:
        if balancing.due_ms is None or context.now_ms < balancing.due_ms:
            return None
        key = 0
    image = context.freeze()
    level = metadata_version(image.features)
    proposal = Proposal(level)
    rows = None
    if image.topics.tally.imbalanced > image.topics.tally.offline:
        rows = image.topics.partitions.rows.rows_from(key, CELLS_SLICE)
    if rows is None:
        due_ms = context.now_ms + balancing.interval_ms
        return Outcome(proposal, None, (replace(balancing, due_ms=due_ms, key=None),))
    acceptor = LeaderAcceptor.of(image.brokers)
    elected, count = elect_preferred(rows, acceptor, level, RECORDS_SLICE)
    if elected is not None:
        taken = proposal.add_bulk(elected)
        assert taken, "a slice fits into a batch of its own"
    return Outcome(proposal, None, (replace(balancing, key=int(rows.keys[count - 1]) + 1),))


def _begin(_image: MetadataImage, settings: ControllerSettings, now_ms: int) -> Balancing:
    interval_ms = settings.leader_imbalance_check_interval_ms
    is_on = settings.auto_leader_rebalance_enable
    return Balancing(interval_ms, now_ms + interval_ms if is_on else None)


def _wake_at_ms(soft: VolatileState, _view: View) -> int | None:
    balancing = soft.of(Balancing)
    return balancing.due_ms if balancing.key is None else 0


BALANCING: Final = PeriodicTask(begin=_begin, wake_at_ms=_wake_at_ms, expire=decide_balance)
