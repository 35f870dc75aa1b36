"""Contents of a directory as recovery read them, before any change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.storage.recovery.log_decision import RecoveryEvidence

if TYPE_CHECKING:
    from quorate.raft.messages import ElectionState, EpochStart, SnapshotInfo
    from quorate.records.ids import Epoch, OffsetAndEpoch
    from quorate.storage.flushed_end import FlushedEnd, FlushedEndFile
    from quorate.storage.healing import HealingState
    from quorate.storage.meta_properties import MetaProperties
    from quorate.storage.recovery.log_scan import ScannedLog
    from quorate.storage.snapshots.snapshot_store import SnapshotSummary


@dataclass(slots=True)
class DirectoryContents:
    """The content of each file of the directory; None if it is missing or fails verification."""

    meta: MetaProperties
    election: ElectionState | None
    flushed: FlushedEnd | None
    flushed_file: FlushedEndFile
    healing_state: HealingState
    epochs: tuple[EpochStart, ...] | None
    stored: list[SnapshotInfo]
    snapshot: SnapshotInfo | None
    summary: SnapshotSummary | None
    damaged_snapshots: list[tuple[OffsetAndEpoch, str]]
    bootstrap: SnapshotSummary | None
    bootstrap_damage: str | None
    log: ScannedLog
    epoch_max: Epoch

    def evidence(self) -> RecoveryEvidence:
        """Return the part of the contents that decides how much of the log is valid."""
        return RecoveryEvidence(
            log=self.log,
            snapshot=None if self.snapshot is None else self.snapshot.snapshot_id,
            damaged_snapshots=[snapshot_id for snapshot_id, _ in self.damaged_snapshots],
            flushed=self.flushed,
            healing_state=self.healing_state,
            epoch_max=self.epoch_max,
        )
