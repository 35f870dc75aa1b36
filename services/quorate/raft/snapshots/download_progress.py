"""Progress of a snapshot download, resumed across leader changes, with backoff on failure.

Two leaders may have written a snapshot with the same id at different times, and a file combined
from both could pass verification and still be wrong. The first batches of each file have the time
of its creation, so a download resumes from another leader only if the first chunk is identical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.api import InstallSnapshot, WriteSnapshotChunk
from quorate.raft.backoff import backoff_ms
from quorate.raft.roles import SnapshotDownload
from quorate.raft.trace_events import TraceEventKind

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.records.ids import Millis, OffsetAndEpoch

# Fraction of the fetch timeout: the longest backoff of a download.
_LONGEST_SHARE: Final = 4
_SAID_MAX: Final = 8


class DownloadProgress:
    """State of the snapshot download of one replica, and its number of failures."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._unfinished: SnapshotDownload | None = None
        self._failing: OffsetAndEpoch | None = None
        self._failures = 0
        self._said: list[str] = []

    def begin(self, snapshot_id: OffsetAndEpoch) -> SnapshotDownload:
        """Start a download, which resumes an unfinished one if the leader has the same file."""
        before = self._unfinished
        if before is not None and (before.snapshot_id != snapshot_id or not before.first):
            before = None
        if self._failing not in (None, snapshot_id):
            self.succeeded()
        self._say(f"fetches snapshot {snapshot_id}")
        return SnapshotDownload(snapshot_id, before=before)

    def restart_from_first_chunk(self, download: SnapshotDownload) -> SnapshotDownload:
        """Fetch the first chunk again, and then resume here if it is still the same file."""
        if download.position == 0:
            return download
        return SnapshotDownload(download.snapshot_id, before=download)

    def add_chunk(
        self, download: SnapshotDownload, chunk: bytes, size_bytes: int
    ) -> SnapshotDownload:
        """Add the requested chunk; the last one installs the snapshot.

        Returns the state of the download.
        """
        if download.position > 0 and size_bytes != download.size_bytes:
            # The leader has rewritten the file since the last chunk.
            return self.restart_from_first_chunk(download)
        before, download.before = download.before, None
        if before is not None and _is_same(before, chunk, size_bytes):
            download.position, download.first = before.position, before.first
            text = f"goes on with snapshot {download.snapshot_id} at {download.position}"
            self.replica.out.note(TraceEventKind.DOWNLOAD, text, position=download.position)
        else:
            self.replica.out.emit(
                WriteSnapshotChunk(download.snapshot_id, download.position, chunk)
            )
            if download.position == 0:
                download.first = chunk
            download.position += len(chunk)
        download.size_bytes = size_bytes
        self._unfinished = download
        if download.position >= size_bytes:
            download.is_installing = True
            self._unfinished = None
            # The log restarts only once the file has been verified.
            log = self.replica.log
            kraft_version = log.committed_kraft_version(self.replica.high_watermark)
            self.replica.out.emit(
                InstallSnapshot(
                    snapshot_id=download.snapshot_id,
                    generation=log.generation + 1,
                    kraft_version=kraft_version,
                )
            )
        return download

    def failed(self, snapshot_id: OffsetAndEpoch, why: str) -> Millis:
        """Record a download that failed or was invalid; returns the time of the next request."""
        self._failing = snapshot_id
        self._failures += 1
        self._say(why)
        return self.retry_at()

    def retry_later(self, snapshot_id: OffsetAndEpoch) -> Millis:
        """Wait, as the leader has nothing to send yet; returns the time of the next request."""
        self._failing = snapshot_id
        self._failures += 1
        return self.retry_at()

    def retry_at(self) -> Millis:
        """The end of the exponential backoff, limited to stay in contact with the leader."""
        config = self.replica.config
        wait = backoff_ms(
            self._failures,
            first_ms=config.retry_backoff_ms,
            longest_ms=config.fetch_timeout_ms // _LONGEST_SHARE,
            random=self.replica.timers.random,
        )
        return self.replica.timers.after(wait)

    def succeeded(self) -> None:
        """Reset the failures: the snapshot is installed, or no longer needed."""
        self._failing, self._failures, self._said = None, 0, []

    def _say(self, what: str) -> None:
        """Report a failure, unless it was reported since the last success."""
        if what not in self._said:
            self.replica.out.note(TraceEventKind.DOWNLOAD, what)
            self._said = [*self._said[1 - _SAID_MAX :], what]


def _is_same(before: SnapshotDownload, chunk: bytes, size_bytes: int) -> bool:
    first = before.first
    return size_bytes == before.size_bytes and chunk[: len(first)] == first
