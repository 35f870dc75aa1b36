"""Leader side of FetchSnapshot: snapshots are verified before serving, pinned while fetched.

Until a file is verified, or while a damaged one waits for its successor, a chunk request gets an
empty response: the replica asks again later, and stays in contact with its leader
(rule `snapshot_pinning`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import CheckSnapshot
from quorate.raft.messages import FetchSnapshotResponse, SnapshotRange
from quorate.raft.trace_events import TraceEventKind
from quorate.records.errors import ErrorCode

if TYPE_CHECKING:
    from quorate.raft.api import SnapshotChecked
    from quorate.raft.messages import FetchSnapshotRequest, SnapshotInfo
    from quorate.raft.replica import Replica
    from quorate.raft.roles import Progress
    from quorate.records.ids import Millis, OffsetAndEpoch


class SnapshotServer:
    """Serves the snapshots of one replica; verification results are kept across roles."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._sound: set[OffsetAndEpoch] = set()
        self._unsound: set[OffsetAndEpoch] = set()
        self._checking: set[OffsetAndEpoch] = set()
        self._fetched: dict[OffsetAndEpoch, Millis] = {}

    def handle_fetch_snapshot(
        self, request: FetchSnapshotRequest, progress: Progress | None
    ) -> FetchSnapshotResponse:
        """Return a chunk; `progress` is that of the requesting replica, if it has sent its id."""
        replica = self.replica
        snapshot_id = request.snapshot_id
        info = replica.log.snapshot(snapshot_id)
        if info is None:
            return FetchSnapshotResponse(
                error=ErrorCode.SNAPSHOT_NOT_FOUND, leader=replica.leader_info
            )
        if not 0 <= request.position < info.size_bytes:
            return FetchSnapshotResponse(
                error=ErrorCode.POSITION_OUT_OF_RANGE, leader=replica.leader_info
            )
        self._fetched[snapshot_id] = replica.timers.now
        if progress is not None and request.position == 0:
            if progress.has_fetched == snapshot_id:
                # A replica that had all chunks and restarts may have found the file damaged.
                self._sound.discard(snapshot_id)
            progress.has_fetched = None
        if not self._is_sound(snapshot_id):
            return self._slice(request, info, b"")
        bytes_max = min(request.max_bytes, replica.config.fetch_snapshot_max_bytes)
        if progress is not None and request.position + bytes_max >= info.size_bytes:
            progress.has_fetched = snapshot_id
        return self._slice(
            request,
            info,
            SnapshotRange(snapshot_id=snapshot_id, position=request.position, bytes_max=bytes_max),
        )

    def _slice(
        self, request: FetchSnapshotRequest, info: SnapshotInfo, chunk: SnapshotRange | bytes
    ) -> FetchSnapshotResponse:
        return FetchSnapshotResponse(
            error=ErrorCode.NONE,
            leader=self.replica.leader_info,
            snapshot_id=info.snapshot_id,
            size_bytes=info.size_bytes,
            position=request.position,
            chunk=chunk,
        )

    def _is_sound(self, snapshot_id: OffsetAndEpoch) -> bool:
        """True if it has been verified; otherwise starts a verification if needed."""
        if snapshot_id in self._sound:
            return True
        if snapshot_id not in self._checking and snapshot_id not in self._unsound:
            self._checking.add(snapshot_id)
            self.replica.out.emit(CheckSnapshot(snapshot_id))
        return False

    def on_verified(self, event: SnapshotChecked) -> None:
        """Record a verification. A damaged snapshot stays listed until a newer one is stored.

        A replica that is below the log start must not get the answer that no snapshot exists.
        """
        self._checking.discard(event.snapshot_id)
        if self.replica.log.snapshot(event.snapshot_id) is None:
            return
        if event.damage is None:
            self._sound.add(event.snapshot_id)
        else:
            # It may have been valid at an earlier verification.
            self._sound.discard(event.snapshot_id)
            self._unsound.add(event.snapshot_id)
            text = f"snapshot {event.snapshot_id} is not offered: {event.damage}"
            self.replica.out.note(TraceEventKind.SNAPSHOT_DAMAGED, text)

    def on_snapshot_stored(self, snapshot_id: OffsetAndEpoch) -> None:
        """Record a new snapshot, which replaces damaged ones."""
        self._sound.discard(snapshot_id)
        self._unsound.discard(snapshot_id)
        self.replica.log.drop_snapshots(self._unsound)
        self.prune()

    def prune(self) -> None:
        """Drop the state of snapshots that no longer exist."""
        ids = {info.snapshot_id for info in self.replica.log.snapshots}
        self._sound &= ids
        self._unsound &= ids
        for snapshot_id in [s for s in self._fetched if s not in ids]:
            del self._fetched[snapshot_id]

    def pinned_snapshots(self) -> frozenset[OffsetAndEpoch]:
        """The snapshots of which a chunk was requested within the last fetch timeout."""
        silent = self.replica.timers.now - self.replica.config.fetch_timeout_ms
        return frozenset(s for s, last_ms in self._fetched.items() if last_ms >= silent)
