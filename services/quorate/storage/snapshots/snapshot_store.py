"""Snapshot files: list, read, fetch in chunks, install, verify (KIP-630).

A snapshot holds records with offsets of its own, from 0: a control batch with the header (and, at
kraft.version 1, the version and the voters), data batches, a control batch with the footer. All of
them carry the epoch of the snapshot's id. A file is `.part` until it is complete and flushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import SnapshotInfo
from quorate.records.batch import CorruptBatchError, read_records
from quorate.records.codec.schema import SchemaError
from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    control_records,
)
from quorate.records.value_types import value_type
from quorate.records.voters import KRAFT_VERSION_MAX
from quorate.storage.errors import DamagedSnapshotError
from quorate.storage.layout import (
    BOOTSTRAP_ID,
    DELETED_SUFFIX,
    PART_SUFFIX,
    checkpoint_name,
    parse_checkpoint,
)
from quorate.storage.log.batch_scanner import scan_batches
from quorate.storage.recovery.quarantine import quarantine

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from quorate.records.ids import Epoch, OffsetAndEpoch
    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import File, FileSystem
    from quorate.storage.log.batch_scanner import FileBatch


@value_type
class SnapshotSummary:
    """The content of a snapshot's control records; no voters at kraft.version 0."""

    last_contained_log_timestamp_ms: int
    voters: VoterSet | None
    kraft_version: int


@value_type
class SnapshotContent:
    """A snapshot in memory: the values of its data records, in order."""

    summary: SnapshotSummary
    records: list[bytes]

    @property
    def voters(self) -> VoterSet | None:
        return self.summary.voters


class SnapshotStore:
    """The snapshots in one log directory."""

    def __init__(self, fs: FileSystem, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._fetching: OffsetAndEpoch | None = None

    def path(self, snapshot_id: OffsetAndEpoch) -> str:
        """The path of a snapshot, existing or not."""
        return f"{self._directory}/{checkpoint_name(snapshot_id)}"

    def stored(self) -> list[SnapshotInfo]:
        """All snapshots, oldest first, without the bootstrap checkpoint 0-0."""
        names = (parse_checkpoint(name) for name in self._fs.list_dir(self._directory))
        ids = sorted(found for found in names if found is not None and found != BOOTSTRAP_ID)
        return [SnapshotInfo(snapshot_id, self.size(snapshot_id)) for snapshot_id in ids]

    def size(self, snapshot_id: OffsetAndEpoch) -> int:
        """Size in bytes. Raises FileNotFoundError if the snapshot does not exist."""
        file = self._fs.open(self.path(snapshot_id))
        try:
            return file.size()
        finally:
            file.close()

    def read(self, snapshot_id: OffsetAndEpoch, *, position: int, size_bytes: int) -> bytes:
        """Read up to `size_bytes` of the file from `position` on."""
        file = self._fs.open(self.path(snapshot_id))
        try:
            return file.read_at(position, size_bytes)
        finally:
            file.close()

    def check(self, snapshot_id: OffsetAndEpoch) -> SnapshotSummary:
        """Read a snapshot to its end. Raises DamagedSnapshotError if it fails verification."""
        checker = SnapshotChecker(self.path(snapshot_id), snapshot_id.epoch)
        for _ in self._batches(checker.path, checker):
            pass
        return checker.summary()

    def data_batches(self, snapshot_id: OffsetAndEpoch) -> Iterator[FileBatch]:
        """Yield the data batches of a snapshot in order, each verified; the file is not loaded.

        Raises DamagedSnapshotError after the valid batches, also if the footer is missing.
        """
        checker = SnapshotChecker(self.path(snapshot_id), snapshot_id.epoch)
        for batch in self._batches(checker.path, checker):
            if not batch.header.is_control:
                yield batch
        checker.summary()

    def content(self, snapshot_id: OffsetAndEpoch) -> SnapshotContent:
        """Read a whole snapshot. Raises DamagedSnapshotError if it fails verification."""
        return read_content(self._fs, self.path(snapshot_id), snapshot_id.epoch)

    def last_contained_log_timestamp_ms(self, snapshot_id: OffsetAndEpoch) -> int:
        """The time of the last record that the snapshot covers, from its header."""
        checker = SnapshotChecker(self.path(snapshot_id), snapshot_id.epoch)
        batches = self._batches(checker.path, checker)
        next(batches, None)
        batches.close()
        return checker.timestamp_ms

    # --- fetching ---------------------------------------------------------------------------------

    def write_chunk(self, snapshot_id: OffsetAndEpoch, *, position: int, data: bytes) -> None:
        """Write bytes of a snapshot that is being fetched, not flushed; position 0 restarts it.

        The part of another snapshot, whose fetch was abandoned, is removed.
        """
        if self._fetching not in (None, snapshot_id):
            given_up = self.path(self._fetching) + PART_SUFFIX
            if self._fs.exists(given_up):
                self._fs.remove(given_up)
        self._fetching = snapshot_id
        file = self._fs.open(self.path(snapshot_id) + PART_SUFFIX, create=position == 0)
        try:
            if position == 0:
                file.truncate(0)
            elif position != file.size():
                raise ValueError(f"a chunk at {position} of a file of {file.size()} bytes")
            file.write_at(position, data)
        finally:
            file.close()

    def install(self, snapshot_id: OffsetAndEpoch, *, kraft_version: int = 0) -> SnapshotSummary:
        """Verify a fetched snapshot and give it its name, durable on return.

        Raises DamagedSnapshotError after removing the file if it fails verification, if its
        kraft.version is below the given one or unknown, or if that version needs voters and the
        snapshot has none.
        """
        part = self.path(snapshot_id) + PART_SUFFIX
        self._fetching = None
        checker = SnapshotChecker(part, snapshot_id.epoch)
        try:
            for _ in self._batches(part, checker):
                pass
            summary = checker.summary()
            if not kraft_version <= summary.kraft_version <= KRAFT_VERSION_MAX:
                raise checker.damage_error(0, f"kraft.version {summary.kraft_version}")
            if summary.kraft_version > 0 and not summary.voters:
                raise checker.damage_error(0, "no voters")
        except DamagedSnapshotError:
            self._fs.remove(part)
            raise
        file = self._fs.open(part)
        try:
            file.fdatasync()
        finally:
            file.close()
        publish(self._fs, self._directory, self.path(snapshot_id))
        return summary

    # --- removal ----------------------------------------------------------------------------------

    def delete(self, snapshot_id: OffsetAndEpoch) -> None:
        """Remove a snapshot, after a rename to a suffix that recovery removes too."""
        doomed = self.path(snapshot_id) + DELETED_SUFFIX
        self._fs.rename(self.path(snapshot_id), doomed)
        self._fs.remove(doomed)

    def quarantine(self, snapshot_id: OffsetAndEpoch) -> str:
        """Quarantine a damaged snapshot; return its new name, which nothing reads."""
        return quarantine(self._fs, self.path(snapshot_id))

    def _batches(self, path: str, checker: SnapshotChecker) -> Generator[FileBatch, None, None]:
        file = self._fs.open(path)
        try:
            yield from checked_batches(file, checker)
        finally:
            file.close()


class SnapshotChecker:
    """Verifies the batches of one snapshot in order, and that it is complete."""

    def __init__(self, path: str, epoch: Epoch) -> None:
        self.path = path
        self._epoch = epoch
        self._offset = 0
        self._header: SnapshotHeader | None = None
        self._voters: VoterSet | None = None
        self._kraft_version = 0
        self._has_footer = False

    def take(self, batch: FileBatch) -> None:
        """Take the next batch. Raises DamagedSnapshotError if it does not belong here."""
        header = batch.header
        if header.base_offset != self._offset:
            raise self.damage_error(
                batch.position, f"offset {header.base_offset}, not {self._offset}"
            )
        if header.epoch != self._epoch:
            raise self.damage_error(batch.position, f"epoch {header.epoch}, not {self._epoch}")
        if self._has_footer:
            raise self.damage_error(batch.position, "a batch behind the footer")
        try:
            records = control_records(batch.buffer, batch.at, header)
        except SchemaError as error:
            raise self.damage_error(batch.position, str(error)) from error
        for record in records:
            self._take_control(batch.position, record)
        if self._header is None:
            raise self.damage_error(batch.position, "no header")
        self._offset = header.last_offset + 1

    def _take_control(self, position: int, record: ControlRecord) -> None:
        match record:
            case SnapshotHeader() if self._header is None:
                self._header = record
            case KRaftVersion(kraft_version=kraft_version):
                self._kraft_version = kraft_version
            case KRaftVoters(voters=voters):
                self._voters = voters
            case SnapshotFooter():
                self._has_footer = True
            case _:
                raise self.damage_error(
                    position, f"a {type(record).__name__} that does not belong here"
                )

    @property
    def timestamp_ms(self) -> int:
        """The header's timestamp. Raises DamagedSnapshotError before the header."""
        if self._header is None:
            raise self.damage_error(0, "no header")
        return self._header.last_contained_log_timestamp_ms

    def summary(self) -> SnapshotSummary:
        """The snapshot's summary. Raises DamagedSnapshotError before the footer."""
        if not self._has_footer:
            raise DamagedSnapshotError(f"{self.path}: it has no footer, so its end is missing")
        return SnapshotSummary(self.timestamp_ms, self._voters, self._kraft_version)

    def damage_error(self, position: int, reason: str) -> DamagedSnapshotError:
        return DamagedSnapshotError(f"{self.path}: damaged at byte {position} ({reason})")


def checked_batches(file: File, checker: SnapshotChecker) -> Iterator[FileBatch]:
    """Yield the batches of a snapshot file after `checker` has taken each."""
    try:
        for batch in scan_batches(file, file.size()):
            checker.take(batch)
            yield batch
    except CorruptBatchError as error:
        raise checker.damage_error(error.position, error.reason) from error


def read_content(fs: FileSystem, path: str, epoch: Epoch) -> SnapshotContent:
    """Read a file in snapshot format: also the bootstrap checkpoints, which have epoch 0."""
    checker = SnapshotChecker(path, epoch)
    records: list[bytes] = []
    file = fs.open(path)
    try:
        for batch in checked_batches(file, checker):
            if not batch.header.is_control:
                values = read_records(batch.buffer, batch.at, batch.header)
                records += [record.value or b"" for record in values]
    finally:
        file.close()
    return SnapshotContent(checker.summary(), records)


def publish(fs: FileSystem, directory: str, path: str) -> None:
    """Give a flushed `.part` file its name and mode, durable on return."""
    fs.make_read_only(path + PART_SUFFIX)
    fs.rename(path + PART_SUFFIX, path)
    fs.sync_dir(directory)
