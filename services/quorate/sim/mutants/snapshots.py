"""Mutants of snapshots and log cleaning."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.raft.replication.log_state import VALID, LogState, NeedsSnapshot
from quorate.server.snapshots.snapshotter import Snapshotter
from quorate.sim.engine.disk import SimulatedDisk
from quorate.sim.mutants.mutant import Mutant, Patch
from quorate.storage.log.metadata_log import MetadataLog
from quorate.storage.snapshots.snapshot_store import SnapshotStore
from quorate.storage.snapshots.writer import SnapshotWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.raft.api import Event
    from quorate.raft.messages import SnapshotInfo
    from quorate.raft.replication.log_state import Diverging, Valid
    from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import FileSystem
    from quorate.storage.snapshots.snapshot_store import SnapshotSummary

_EVERYTHING: Final = 1 << 60

_freeze = SnapshotWriter.freeze
_install = SnapshotStore.install
_clean = Snapshotter.clean
_validate = LogState.validate
_restart_at = LogState.restart_at


def _freeze_unflushed(self: SnapshotWriter) -> SnapshotInfo:
    with _no_flushes(self._fs):
        return _freeze(self)


def _install_unflushed(
    self: SnapshotStore, snapshot_id: OffsetAndEpoch, *, kraft_version: int = 0
) -> SnapshotSummary:
    with _no_flushes(self._fs):
        return _install(self, snapshot_id, kraft_version=kraft_version)


@contextmanager
def _no_flushes(disk: FileSystem) -> Iterator[None]:
    """Let flushes within the block return without any write reaching the platter."""
    assert isinstance(disk, SimulatedDisk)
    before, disk.unpromised = disk.unpromised, (0, _EVERYTHING)
    try:
        yield
    finally:
        disk.unpromised = before


def _latest_voters(self: MetadataLog, offset: int) -> VoterSet:
    del offset
    return self.state.voter_set


def _clean_in_silence(self: Snapshotter, replayed: Offset) -> None:
    deliver = self._driver.deliver

    def deliver_nothing(work: Callable[[], Event | None]) -> None:
        def silently() -> None:
            work()

        deliver(silently)

    self._driver.deliver = deliver_nothing  # type: ignore[method-assign, assignment]
    try:
        _clean(self, replayed)
    finally:
        self._driver.deliver = deliver  # type: ignore[method-assign]


def _serve_all(self: LogState, offset: Offset, epoch: Epoch) -> Valid | Diverging | NeedsSnapshot:
    verdict = _validate(self, offset, epoch)
    is_below = isinstance(verdict, NeedsSnapshot) and offset < self.log_start
    return VALID if is_below else verdict


def _restart_without_voters(
    self: LogState, snapshot: SnapshotInfo, voters: VoterSet | None, kraft_version: int
) -> None:
    del voters
    before = self.voters
    _restart_at(self, snapshot, None, kraft_version)
    self.voters = before


BUGS: Final = (
    Mutant(
        "snapshot-published-unflushed",
        "a snapshot has its name before its bytes are on the disk",
        (3,),
        (Patch(SnapshotWriter, "freeze", _freeze_unflushed),),
    ),
    Mutant(
        "fetched-snapshot-unflushed",
        "a log restarts at a fetched snapshot whose bytes are not on the disk",
        (5,),
        (Patch(SnapshotStore, "install", _install_unflushed),),
    ),
    Mutant(
        "snapshot-with-later-voters",
        "a snapshot holds the latest voters instead of those in force at its end",
        (13,),
        (Patch(MetadataLog, "voters_below", _latest_voters),),
    ),
    Mutant(
        "cleaning-in-silence",
        "the core does not hear of what was cleaned away",
        (8,),
        (Patch(Snapshotter, "clean", _clean_in_silence),),
    ),
    Mutant(
        "serves-below-log-start",
        "a replica that is behind the log start is served as if its records were there",
        (8, 9),
        (Patch(LogState, "validate", _serve_all),),
    ),
    Mutant(
        "install-keeps-voters",
        "a log that restarts at a snapshot keeps the voters of before",
        (8,),
        (Patch(LogState, "restart_at", _restart_without_voters),),
    ),
)
