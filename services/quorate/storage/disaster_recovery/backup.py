"""Selects what a backup contains: the newest snapshot and the log after it.

It only reads, and takes no lock: a controller may append, truncate and clean at the same time. All
files are opened before the first is read, and if there is a gap they are looked up again. Committed
records are never truncated, so a backup that ends there is valid in any case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.storage import layout
from quorate.storage.disaster_recovery.backup_file import BackupPart, Manifest
from quorate.storage.disaster_recovery.recovery_plan import check_no_unfinished_recovery
from quorate.storage.errors import DamagedSnapshotError, StorageError
from quorate.storage.flushed_end import FlushedEndFile
from quorate.storage.log.batch_scanner import scan_batches
from quorate.storage.log.segment import Segment
from quorate.storage.meta_properties import MetaProperties, read_meta
from quorate.storage.quorum_state import read_quorum_state
from quorate.storage.recovery.log_decision import EMPTY
from quorate.storage.recovery.log_scan import KnownEpochs, ScannedLog, scan_log
from quorate.storage.snapshots.snapshot_store import SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.storage.file_system import File, FileSystem

_TRIES: Final = 10
_NEWEST_EPOCH: Final = Epoch(2**31 - 1)


class DirectoryChangedError(Exception):
    """The directory changed between two reads, or is damaged: another attempt shows which."""


@dataclass(slots=True)
class BackupSource:
    """A directory to back up, with its files open."""

    meta: MetaProperties
    epoch: Epoch = field(default=Epoch(0))
    end: OffsetAndEpoch = field(default=EMPTY)
    snapshot: OffsetAndEpoch | None = None
    parts: list[BackupPart] = field(default_factory=list)
    files: list[File] = field(default_factory=list)

    def open(self, fs: FileSystem, path: str) -> File:
        self.files.append(fs.open(path))
        return self.files[-1]

    def add_whole(self, fs: FileSystem, path: str, name: str) -> None:
        file = self.open(fs, path)
        self.parts.append(BackupPart(name, file, 0, file.size()))

    def manifest(self, *, taken_ms: int, is_committed: bool) -> Manifest:
        """Create the manifest of the backup."""
        return Manifest(
            meta=self.meta,
            taken_ms=taken_ms,
            epoch=self.epoch,
            end=self.end,
            snapshot=self.snapshot,
            is_committed=is_committed,
        )

    def close(self) -> None:
        for file in self.files:
            file.close()


def open_source(fs: FileSystem, directory: str, *, below: Offset | None = None) -> BackupSource:
    """Open the files for a backup of `directory`, up to `below` or to the end of the log.

    Raises StorageError if the directory cannot be backed up: damaged, unformatted, empty.
    """
    check_no_unfinished_recovery(fs, directory)
    meta_path = f"{directory}/{layout.META_PROPERTIES}"
    meta = read_meta(fs, meta_path)
    if meta is None:
        raise StorageError(f"{meta_path} is missing: there is nothing to back up here")
    said = ""
    for _ in range(_TRIES):
        try:
            return _open(fs, directory, meta, below)
        except (DirectoryChangedError, FileNotFoundError) as error:
            said = str(error)
    raise StorageError(
        f"{directory} is damaged: {said}. A controller that is started on it heals or says what to"
        " do; take the backup from another controller"
    )


def local_end(fs: FileSystem, directory: str) -> OffsetAndEpoch | None:
    """Return the flushed end of the directory's controller; None if unknown."""
    flushed = FlushedEndFile(fs, f"{directory}/{layout.FLUSHED_END}")
    entry = flushed.load()
    flushed.close()
    return None if entry is None else entry.end


def _open(
    fs: FileSystem, directory: str, meta: MetaProperties, below: Offset | None
) -> BackupSource:
    log_dir = f"{directory}/{layout.LOG_DIR}"
    if not fs.exists(log_dir):
        raise StorageError(f"{log_dir} is missing: there is nothing to back up here")
    flushed = local_end(fs, directory)
    source = BackupSource(meta)
    try:
        segments = []
        for name in fs.list_dir(log_dir):
            base = layout.parse_segment(name)
            if base is not None:
                file = source.open(fs, f"{log_dir}/{name}")
                segments.append(Segment(f"{log_dir}/{name}", file, base, file.size()))
        snapshot = source.snapshot = _newest_snapshot(SnapshotStore(fs, log_dir))
        bootstrap = f"{directory}/{layout.BOOTSTRAP_CHECKPOINT}"
        if fs.exists(bootstrap):
            source.add_whole(fs, bootstrap, layout.BOOTSTRAP_CHECKPOINT)
        if snapshot is not None:
            name = layout.checkpoint_name(snapshot)
            source.add_whole(fs, f"{log_dir}/{name}", f"{layout.LOG_DIR}/{name}")
        election = read_quorum_state(fs, f"{log_dir}/{layout.QUORUM_STATE}")
        log = scan_log(segments, KnownEpochs(_base_epoch(segments, snapshot), _NEWEST_EPOCH))
        source.end = _end(log, snapshot, flushed=flushed, below=below)
        source.epoch = max(election.epoch if election else Epoch(0), source.end.epoch)
        source.parts += _log_parts(log, snapshot.offset if snapshot else Offset(0), source.end)
    except BaseException:
        source.close()
        raise
    return source


def _newest_snapshot(snapshots: SnapshotStore) -> OffsetAndEpoch | None:
    """Return the newest valid snapshot. An invalid one is skipped: the log may reach below it."""
    for info in reversed(snapshots.stored()):
        try:
            snapshots.check(info.snapshot_id)
        except DamagedSnapshotError:
            continue
        return info.snapshot_id
    return None


def _base_epoch(segments: list[Segment], snapshot: OffsetAndEpoch | None) -> Epoch | None:
    if not segments or segments[0].base_offset == 0:
        return Epoch(0)
    is_base = snapshot is not None and snapshot.offset == segments[0].base_offset
    return snapshot.epoch if snapshot is not None and is_base else None


def _end(
    log: ScannedLog,
    snapshot: OffsetAndEpoch | None,
    *,
    flushed: OffsetAndEpoch | None,
    below: Offset | None,
) -> OffsetAndEpoch:
    """Return the end of the backup.

    Raises DirectoryChangedError for a gap, or for an end below the flushed end.
    """
    start = snapshot.offset if snapshot else Offset(0)
    if log.segments and log.first > start:
        raise DirectoryChangedError(
            f"the log begins at {log.first}, behind the snapshot's end {start}"
        )
    end = max(log.end, snapshot) if snapshot is not None else log.end
    if end.offset == 0:
        raise StorageError("the log is empty: there is nothing to back up yet")
    if below is not None and below < end.offset:
        limit = max(below, start)
        epoch = log.epoch_before(limit)
        if epoch is None:
            assert snapshot is not None, "the log begins at 0, or at a snapshot"
            return snapshot
        return OffsetAndEpoch(epoch=epoch, offset=limit)
    wanted = max(flushed.offset if flushed else 0, below or 0)
    if end.offset < wanted:
        why = f" ({log.problem.reason})" if log.problem is not None else ""
        raise DirectoryChangedError(f"the log ends at {end}, and {wanted} was flushed{why}")
    return end


def _log_parts(log: ScannedLog, start: Offset, end: OffsetAndEpoch) -> Iterator[BackupPart]:
    """Yield the batches from the one that holds `start` up to `end`, one part per segment."""
    if not log.has_batches:
        return
    for index, segment in enumerate(log.segments[: log.segment + 1]):
        size_bytes = log.position if index == log.segment else segment.size_bytes
        first: tuple[int, int] | None = None
        stop = 0
        for batch in scan_batches(segment.file, size_bytes):
            header = batch.header
            if header.base_offset >= end.offset:
                break
            if header.last_offset >= start:
                first = first or (header.base_offset, batch.position)
                stop = batch.position + header.size_bytes
        if first is not None:
            base, position = first
            name = f"{layout.LOG_DIR}/{layout.segment_name(base)}"
            yield BackupPart(name, segment.file, position, stop - position)
