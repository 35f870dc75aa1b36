"""Snapshot retention by total size and age (Kafka's maybeClean).

The log starts at the end of the oldest snapshot kept, and one snapshot is always kept. Cleaning
never passes what the own state machine has replayed: Kafka's does, and ends the active controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from quorate.raft.messages import SnapshotInfo
    from quorate.records.ids import Offset, OffsetAndEpoch


def snapshots_to_keep(
    stored: Sequence[SnapshotInfo],
    *,
    replayed: Offset,
    pinned: Collection[OffsetAndEpoch] = (),
    retention_bytes: int,
    log_bytes_from: Callable[[Offset], int],
    is_too_old: Callable[[SnapshotInfo], bool],
) -> Sequence[SnapshotInfo]:
    """Return the snapshots of `stored`, oldest first, that survive this cleaning.

    A snapshot is deleted if log and snapshots together exceed `retention_bytes` (negative: no
    limit) or if it is too old, as long as a newer one exists that has been replayed. A `pinned`
    snapshot stays, and so do those after it: its fetcher needs the log from there on.
    """
    oldest = 0
    while oldest + 1 < len(stored) and stored[oldest + 1].snapshot_id.offset <= replayed:
        if stored[oldest].snapshot_id in pinned:
            break
        kept = stored[oldest:]
        size_bytes = sum(info.size_bytes for info in kept)
        size_bytes += log_bytes_from(kept[0].snapshot_id.offset)
        if not 0 <= retention_bytes < size_bytes and not is_too_old(kept[0]):
            break
        oldest += 1
    return stored[oldest:]
