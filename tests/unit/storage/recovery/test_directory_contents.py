"""Everything that recovery has read, in the form in which it is checked."""

from __future__ import annotations

from dataclasses import replace

from quorate.raft.messages import SnapshotInfo
from quorate.records.ids import Epoch, Offset
from quorate.storage.flushed_end import FlushedEndFile
from quorate.storage.healing import HealingState
from quorate.storage.recovery.directory_contents import DirectoryContents
from quorate.storage.recovery.log_decision import RecoveryEvidence
from quorate.storage.recovery.log_scan import ScannedLog
from tests.unit.storage.conftest import DIRECTORY, Replica, at

LOG = ScannedLog([], Offset(0), at(0, 0))


def found() -> DirectoryContents:
    replica = Replica()
    return DirectoryContents(
        meta=replica.meta,
        election=None,
        flushed=None,
        flushed_file=FlushedEndFile(replica.disk, f"{DIRECTORY}/flushed-end"),
        healing_state=HealingState(),
        epochs=None,
        stored=[],
        snapshot=None,
        summary=None,
        damaged_snapshots=[],
        bootstrap=None,
        bootstrap_damage=None,
        log=LOG,
        epoch_max=Epoch(7),
    )


def test_an_empty_directory_is_no_evidence_of_anything_but_epochs() -> None:
    assert found().evidence() == RecoveryEvidence(
        log=LOG,
        snapshot=None,
        damaged_snapshots=[],
        flushed=None,
        healing_state=HealingState(),
        epoch_max=Epoch(7),
    )


def test_of_snapshots_only_their_ends_count() -> None:
    evidence = replace(
        found(),
        snapshot=SnapshotInfo(at(5, 1), 100),
        damaged_snapshots=[(at(9, 2), "its CRC is wrong")],
    ).evidence()
    assert (evidence.snapshot, evidence.damaged_snapshots) == (at(5, 1), [at(9, 2)])
