"""Writes snapshots and bootstrap checkpoints in Kafka's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.messages import SnapshotInfo
from quorate.records.batch import encode_batch
from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    encode_control_batch,
)
from quorate.storage.file_system import parent
from quorate.storage.layout import PART_SUFFIX
from quorate.storage.snapshots.snapshot_store import publish

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.records.ids import OffsetAndEpoch
    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import FileSystem

# Kafka's batches are up to 8 MiB; smaller ones let a large snapshot be written in short time
# slices.
BATCH_BYTES: Final = 128 * 1024
# Length, deltas, key and header count around a value take no more than this.
_RECORD_OVERHEAD_BYTES: Final = 24


class SnapshotWriter:
    """One snapshot in progress: call `append` repeatedly, then `freeze`."""

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        snapshot_id: OffsetAndEpoch,
        *,
        timestamp_ms: int,
        last_contained_log_timestamp_ms: int,
        kraft_version: int = 0,
        voters: VoterSet | None = None,
    ) -> None:
        """Write `voters` at kraft.version 1 only, which has them in the log."""
        self._fs = fs
        self._path = path
        self._snapshot_id = snapshot_id
        self._timestamp_ms = timestamp_ms
        self._values: list[bytes] = []
        self._values_bytes = 0
        self._offset = 0
        self._size_bytes = 0
        self._is_frozen = False
        self._file = fs.open(path + PART_SUFFIX, create=True)
        self._file.truncate(0)
        header: list[ControlRecord] = [SnapshotHeader(last_contained_log_timestamp_ms)]
        if kraft_version > 0 and voters is not None:
            header += [KRaftVersion(kraft_version), KRaftVoters(voters)]
        self._write_control(header)

    def append(self, values: Iterable[bytes]) -> None:
        """Append data records by their encoded values; full batches are written, not flushed."""
        assert not self._is_frozen, "a snapshot that is frozen takes no more records"
        for value in values:
            size_bytes = len(value) + _RECORD_OVERHEAD_BYTES
            if self._values and self._values_bytes + size_bytes > BATCH_BYTES:
                self._write_values()
            self._values.append(value)
            self._values_bytes += size_bytes

    def freeze(self) -> SnapshotInfo:
        """Write the footer and make the file durable under its name."""
        self._is_frozen = True
        self._write_values()
        self._write_control([SnapshotFooter()])
        self._file.fdatasync()
        publish(self._fs, parent(self._path), self._path)
        # Closed last: a file that could not be published is closed once, by `abandon`.
        self._file.close()
        return SnapshotInfo(self._snapshot_id, self._size_bytes)

    def abandon(self) -> None:
        """Remove what has been written, unless it has its name already."""
        self._file.close()
        part = self._path + PART_SUFFIX
        if self._fs.exists(part):
            self._fs.remove(part)

    def _write_values(self) -> None:
        if self._values:
            batch = encode_batch(
                self._values,
                timestamp_ms=self._timestamp_ms,
                base_offset=self._offset,
                epoch=self._snapshot_id.epoch,
            )
            self._write(batch, len(self._values))
            self._values, self._values_bytes = [], 0

    def _write_control(self, records: list[ControlRecord]) -> None:
        batch = encode_control_batch(
            records,
            timestamp_ms=self._timestamp_ms,
            base_offset=self._offset,
            epoch=self._snapshot_id.epoch,
        )
        self._write(batch, len(records))

    def _write(self, batch: bytes, count: int) -> None:
        self._file.write_at(self._size_bytes, batch)
        self._size_bytes += len(batch)
        self._offset += count
