"""Mutants of disk handling and snapshots."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.raft.leader_eligibility import LeaderEligibility
from quorate.raft.replication.high_watermark import CommitState
from quorate.raft.snapshots.server import SnapshotServer
from quorate.records.ids import Offset
from quorate.server.snapshots.snapshotter import Snapshotter
from quorate.sim.engine.node import SimulatedNode
from quorate.sim.mutants.mutant import Mutant, Patch, constant
from quorate.storage.log_store import LogStore
from quorate.storage.snapshots.writer import SnapshotWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.controller.image import MetadataImage
    from quorate.raft.api import RecoveredState
    from quorate.raft.replication.log_state import LogState
    from quorate.records.ids import OffsetAndEpoch, ReplicaKey
    from quorate.storage.log.metadata_log import MetadataLog

_recover = SimulatedNode._recover
_init = CommitState.__init__


def _recover_without_flush(self: SimulatedNode) -> RecoveredState:
    """Recover with flushes that do not cover the writes of the previous process."""
    self.disk.unpromised = (0, self.disk.sequence)
    try:
        return _recover(self)
    finally:
        self.disk.unpromised = (0, 0)


def _start_below_snapshot(self: CommitState, log: LogState, key: ReplicaKey) -> None:
    _init(self, log, key)
    self.high_watermark = Offset(0)


_append = SnapshotWriter.append
_consider = Snapshotter.maybe_snapshot
_begin_snapshot = LogStore.begin_snapshot


def _with_a_hole(self: SnapshotWriter, records: Iterable[bytes]) -> None:
    values = list(records)
    _append(self, values[:1] + values[2:])


@contextmanager
def _taken_for_flushed(log: MetadataLog) -> Iterator[None]:
    flushed, log.state.flushed = log.state.flushed, log.end.offset
    try:
        yield
    finally:
        log.state.flushed = flushed


def _consider_unflushed(self: Snapshotter, image: MetadataImage) -> None:
    with _taken_for_flushed(self._store.log):
        _consider(self, image)


def _begin_unflushed(
    self: LogStore,
    snapshot_id: OffsetAndEpoch,
    *,
    timestamp_ms: int,
    contained_ms: int | None = None,
) -> SnapshotWriter:
    with _taken_for_flushed(self.log):
        return _begin_snapshot(
            self, snapshot_id, timestamp_ms=timestamp_ms, contained_ms=contained_ms
        )


BUGS: Final = (
    Mutant(
        "recovery-without-flush",
        "what a killed process left in the page cache is taken for flushed (rule recovery_flush)",
        (1795430132,),
        (Patch(SimulatedNode, "_recover", _recover_without_flush),),
    ),
    Mutant(
        "starts-below-snapshot",
        "after a restart the high watermark starts below the newest snapshot "
        "(rule snapshot_within_flush)",
        (3,),
        (Patch(CommitState, "__init__", _start_below_snapshot),),
    ),
    Mutant(
        "snapshot-beyond-flush",
        "a snapshot covers what its own replica has not flushed (rule snapshot_within_flush)",
        (9,),
        (
            Patch(Snapshotter, "maybe_snapshot", _consider_unflushed),
            Patch(LogStore, "begin_snapshot", _begin_unflushed),
        ),
    ),
    Mutant(
        "hung-disk-leads",
        "a leader whose flush does not return leads on, as long as others flush "
        "(rule disk_call_deadline)",
        (18,),
        (Patch(LeaderEligibility, "flush_deadline", property(constant(answer=None))),),
    ),
    Mutant(
        "serves-unchecked-snapshot",
        "a leader sends snapshots without a look at them (rule snapshot_pinning)",
        (7,),
        (Patch(SnapshotServer, "_is_sound", constant(answer=True)),),
    ),
    Mutant(
        "cleaning-forgets-fetchers",
        "a snapshot is cleaned away under the replica that fetches it (rule snapshot_pinning)",
        (5,),
        (Patch(SnapshotServer, "pinned_snapshots", constant(answer=frozenset())),),
    ),
    Mutant(
        "snapshot-with-a-hole",
        "a snapshot lacks one record",
        (3, 5),
        (Patch(SnapshotWriter, "append", _with_a_hole),),
    ),
)
