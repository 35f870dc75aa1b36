"""Planted bugs of disks and snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.offering import Offering
from quorate.raft.replica import Replica
from quorate.records.ids import Offset
from quorate.sim.application import Application
from quorate.sim.node import SimulatedNode
from quorate.sim.planted.bug import Bug, Patch, always

if TYPE_CHECKING:
    from quorate.raft.api import RaftConfig, Random, RecoveredState

_recover = SimulatedNode._recover
_init = Replica.__init__


def _recover_without_flush(self: SimulatedNode) -> RecoveredState:
    """Flushes during recovery leave aside what the last process had written."""
    self.disk.unpromised = (0, self.disk.sequence)
    try:
        return _recover(self)
    finally:
        self.disk.unpromised = (0, 0)


def _start_below_snapshot(
    self: Replica, config: RaftConfig, recovered: RecoveredState, random: Random
) -> None:
    _init(self, config, recovered, random)
    self.high_watermark = Offset(0)


def _with_a_hole(self: Application) -> list[bytes]:
    records = self.machine.records()
    return records[:1] + records[2:]


BUGS: Final = (
    Bug(
        "recovery-without-flush",
        "what a killed process left in the page cache is taken for flushed (rule 13)",
        (28,),
        (Patch(SimulatedNode, "_recover", _recover_without_flush),),
    ),
    Bug(
        "starts-below-snapshot",
        "after a restart the high watermark starts below the newest snapshot (rule 15)",
        (3, 5),
        (Patch(Replica, "__init__", _start_below_snapshot),),
    ),
    Bug(
        "snapshot-beyond-flush",
        "a snapshot covers what its own replica has not flushed (rule 15)",
        (3, 6),
        (Patch(Application, "may_snapshot", always(answer=True)),),
    ),
    Bug(
        "hung-disk-leads",
        "a leader whose flush does not return leads on, as long as others flush (rule 24)",
        (57, 1),
        (Patch(Replica, "flush_deadline", property(always(answer=None))),),
    ),
    Bug(
        "serves-unchecked-snapshot",
        "a leader sends snapshots without a look at them (rule 30)",
        (7, 3),
        (Patch(Offering, "_is_sound", always(answer=True)),),
    ),
    Bug(
        "cleaning-forgets-fetchers",
        "a snapshot is cleaned away under whoever fetches it (rule 30)",
        (18,),
        (Patch(Offering, "pinned", always(answer=frozenset())),),
    ),
    Bug(
        "snapshot-with-a-hole",
        "a snapshot lacks one record",
        (3, 5),
        (Patch(Application, "records", _with_a_hole),),
    ),
)
