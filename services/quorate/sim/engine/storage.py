"""Production storage code on a simulated disk, with hooks for invariants."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.raft.api import LogTruncated, SnapshotInstalled
from quorate.records.batch import BatchHeader, CorruptBatchError, iter_batches
from quorate.server.component_config import storage_config
from quorate.sim.engine.node_config import DATA_DIR
from quorate.storage.flushed_end import newest_slot
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.healing import HealingState
from quorate.storage.layout import BOOTSTRAP_ID, FLUSHED_END, parse_checkpoint, parse_segment
from quorate.storage.layout import LOG_DIR as LOG_DIR_NAME
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.recovery.recovery import recover

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.raft.api import (
        InstallSnapshot,
        LogCleaned,
        SnapshotRefused,
        TruncateLog,
        TruncationRefused,
    )
    from quorate.raft.messages import SnapshotInfo
    from quorate.records.ids import ClusterId, DirectoryId, NodeId, Offset, OffsetAndEpoch
    from quorate.records.voters import VoterSet
    from quorate.server.config import ControllerConfig
    from quorate.sim.engine.disk import SimulatedDisk
    from quorate.sim.interfaces import MachineInterface
    from quorate.storage.recovery.recovery import Recovered

LOG_DIR: Final = f"{DATA_DIR}/{LOG_DIR_NAME}"
CACHE_BYTES: Final = 8192


class ObservedStore(LogStore):
    """The production log store, which notifies the invariants of changes to the log."""

    node: MachineInterface

    def truncate(self, effect: TruncateLog) -> LogTruncated | TruncationRefused:
        self.node.world.watch.truncating(self.node, effect.to)
        event = super().truncate(effect)
        if isinstance(event, LogTruncated):
            self.node.log.cut(effect.to.offset)
        return event

    def install(self, effect: InstallSnapshot) -> SnapshotInstalled | SnapshotRefused:
        self.node.world.maybe_corrupt_snapshot(self.node, effect.snapshot_id)
        self.node.world.watch.installing(self.node, effect.snapshot_id)
        event = super().install(effect)
        if isinstance(event, SnapshotInstalled):
            self.node.begin_log_at(event.snapshot.snapshot_id)
        return event

    def snapshot_stored(self, info: SnapshotInfo) -> None:
        super().snapshot_stored(info)
        # If a fetched snapshot has overtaken it, this one was deleted.
        if self.log.state.snapshot(info.snapshot_id) is not None:
            self.node.world.watch.snapshot(self.node, info.snapshot_id)

    def clean(
        self,
        replayed: Offset,
        *,
        now_ms: int | None = None,
        pinned: frozenset[OffsetAndEpoch] = frozenset(),
        report: Callable[[str], None] = print,
    ) -> LogCleaned | None:
        cleaned = super().clean(replayed, now_ms=now_ms, pinned=pinned, report=report)
        if cleaned is not None:
            self.node.world.watch.cleaned(self.node, cleaned)
            self.node.log.drop_before(cleaned.log_start)
        return cleaned

    def _remember(self, healing_state: HealingState) -> None:
        super()._remember(healing_state)
        if healing_state == HealingState():
            self.node.healed()


def format_disk(
    disk: SimulatedDisk,
    *,
    cluster_id: ClusterId,
    node_id: NodeId,
    directory_id: DirectoryId,
    voters: VoterSet | None,
    is_first_bootstrap: bool,
) -> None:
    """Format as `quorate storage format` does, without bootstrap records."""
    meta = MetaProperties(node_id, cluster_id, directory_id)
    formatting = Formatting(
        meta=meta, records=(), voters=voters, is_first_bootstrap=is_first_bootstrap
    )
    format_directory(disk, DATA_DIR, formatting, timestamp_ms=0)


def open_storage(
    disk: SimulatedDisk, settings: ControllerConfig
) -> tuple[ObservedStore, Recovered]:
    """Recover the directory as a controller does when it starts, with little memory for it."""
    config = replace(storage_config(settings), cache_bytes=CACHE_BYTES)
    recovered = recover(disk, DATA_DIR, config)
    return ObservedStore(disk, DATA_DIR, recovered, config), recovered


def corruptible_files(disk: SimulatedDisk) -> list[tuple[str, int]]:
    """Files of the log directory with the number of leading bytes that were certainly flushed.

    Data after the durable flushed end may be a torn tail, which recovery may truncate silently
    (rule `flushed_end_file`). So bit rot there need not be detected.
    """
    return disk.aside(partial(_rottable, disk))


def _rottable(disk: SimulatedDisk) -> list[tuple[str, int]]:
    path = f"{DATA_DIR}/{FLUSHED_END}"
    data = disk.on_platter(path) if disk.exists(path) else b""
    newest = newest_slot(data)
    if newest is None:
        return []
    flushed = newest[2]
    places = []
    for name, size_bytes in disk.files(LOG_DIR).items():
        if parse_segment(name) is not None:
            data = disk.read(f"{LOG_DIR}/{name}")
            safe = 0
            for position, header in _sound_batches(data):
                if header.last_offset >= flushed.end.offset:
                    break
                safe = position + header.size_bytes
            places.append((name, min(safe, size_bytes)))
        elif parse_checkpoint(name) not in (None, BOOTSTRAP_ID):
            places.append((name, size_bytes))
    return places


def _sound_batches(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the batches up to the first corrupt one: the file may have bit rot already."""
    try:
        yield from iter_batches(data)
    except CorruptBatchError:
        return
