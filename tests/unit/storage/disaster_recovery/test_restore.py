"""A backup in an empty directory: the same log, a single-voter quorum, a crash at each step."""

from __future__ import annotations

import copy
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.raft.messages import VotersAt
from quorate.records.ids import ClusterId, DirectoryId, NodeId, Offset
from quorate.sim.engine.disk import SimulatedDisk, Survival
from quorate.storage.disaster_recovery.backup import open_source
from quorate.storage.disaster_recovery.backup_file import check_backup, write_backup
from quorate.storage.disaster_recovery.recovery_plan import RecoveryKind, read_plan, write_plan
from quorate.storage.disaster_recovery.restore import check_empty, make_restore_plan, restore
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically
from quorate.storage.storage_config import StorageConfig
from tests.unit.storage.conftest import CLUSTER_ID, DIRECTORY, THREE, Crashed, Replica, at, voter

if TYPE_CHECKING:
    from quorate.records.ids import OffsetAndEpoch
    from quorate.storage.disaster_recovery.recovery_plan import RecoveryPlan

NODE = NodeId(7)
NEW_ID = DirectoryId(b"\x09" * 16)
NEW_END = at(21, 1004)


def backup_of(replica: Replica) -> io.BytesIO:
    source = open_source(replica.disk, DIRECTORY)
    output = io.BytesIO()
    write_backup(source.manifest(taken_ms=5, is_committed=True), source.parts, output)
    return output


def plan_of(backup: io.BytesIO, cluster_id: str = CLUSTER_ID) -> RecoveryPlan:
    return make_restore_plan(
        check_backup(backup, "b.tar").manifest,
        "b.tar",
        node_id=NODE,
        cluster_id=ClusterId(cluster_id),
        unpacked_as=DirectoryId(b"\x08" * 16),
        directory_id=NEW_ID,
        endpoints=voter(7).endpoints,
        started_ms=6,
    )


def an_empty_replica() -> Replica:
    replica = Replica()
    replica.disk = SimulatedDisk()
    replica.config = StorageConfig(node_id=NODE, segment_bytes=300)
    return replica


def restored(replica: Replica, backup: io.BytesIO, plan: RecoveryPlan) -> OffsetAndEpoch:
    return restore(replica.disk, DIRECTORY, plan, backup, timestamp_ms=500)


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_the_log_of_the_backup_is_that_of_a_quorum_of_one(
    veteran: Replica, *, has_snapshot: bool
) -> None:
    if has_snapshot:
        veteran.snapshot(at(12, 2), b"state")
    content = veteran.content(12 if has_snapshot else 0)
    backup, replica = backup_of(veteran), an_empty_replica()
    plan = plan_of(backup, "another")
    assert restored(replica, backup, plan) == NEW_END
    recovered = replica.open()
    state = recovered.state
    assert (state.end, state.remembered_end, recovered.findings) == (NEW_END, None, ())
    alone = replace(plan, voters_before=THREE).voters
    assert state.voters[-1] == VotersAt(Offset(20), alone)
    assert (recovered.meta, plan.key.node_id, plan.key.directory_id) == (plan.after, NODE, NEW_ID)
    assert replica.content()[: len(content)] == content
    if has_snapshot:
        assert replica.store.read_snapshot(at(12, 2)).records == [b"state"]
    assert "rescue-1004.json" in replica.disk.files(DIRECTORY)


@pytest.mark.rule("quorum_loss_recovery")
def test_only_an_empty_directory_is_restored_into() -> None:
    disk = SimulatedDisk()
    check_empty(disk, DIRECTORY)
    disk.make_dirs(DIRECTORY)
    disk.make_dirs(f"{DIRECTORY}/lost+found")
    write_atomically(disk, f"{DIRECTORY}/.lock", b"")
    check_empty(disk, DIRECTORY)
    write_atomically(disk, f"{DIRECTORY}/meta.properties", b"")
    with pytest.raises(StorageError, match=r"is not empty, it holds meta\.properties"):
        check_empty(disk, DIRECTORY)


def test_a_directory_in_use_is_not_touched(veteran: Replica) -> None:
    backup = backup_of(veteran)
    before = (veteran.disk.files(DIRECTORY), veteran.files())
    with pytest.raises(StorageError, match="is not empty"):
        restored(veteran, backup, plan_of(backup))
    assert (veteran.disk.files(DIRECTORY), veteran.files()) == before


def test_an_interrupted_recovery_is_not_taken_for_an_interrupted_restoration(
    veteran: Replica,
) -> None:
    plan = replace(plan_of(backup_of(veteran)), kind=RecoveryKind.RECOVER)
    write_plan(veteran.disk, DIRECTORY, plan)
    with pytest.raises(StorageError, match="is not empty"):
        check_empty(veteran.disk, DIRECTORY)


def test_a_backup_that_does_not_hold_what_it_says_is_refused(veteran: Replica) -> None:
    source = open_source(veteran.disk, DIRECTORY)
    backup = io.BytesIO()
    manifest = replace(source.manifest(taken_ms=5, is_committed=True), end=at(19, 4))
    write_backup(manifest, source.parts, backup)
    replica = an_empty_replica()
    with pytest.raises(StorageError, match="ends at 18@4, not at 19@4"):
        restored(replica, backup, plan_of(backup))
    with pytest.raises(StorageError, match="restore` was interrupted here"):
        replica.open()


@pytest.mark.parametrize("survival", [None, *Survival])
def test_a_restoration_that_dies_anywhere_begins_again(
    veteran: Replica, survival: Survival | None
) -> None:
    veteran.snapshot(at(12, 2), b"state")
    backup = backup_of(veteran)
    for calls in range(1000):
        replica = an_empty_replica()
        replica.crash_after(calls)
        plan = plan_of(backup)
        try:
            restored(replica, backup, plan)
        except Crashed:
            replica.revive()
        else:
            break
        if survival is not None:
            replica.lose_power(survival, seed=calls)
        disk = replica.disk
        is_over = "rescue-1004.json" in disk.files(DIRECTORY)
        if not is_over:
            with pytest.raises(StorageError):
                copy.deepcopy(replica).open()
            plan = replace(plan, after=replace(plan.after, directory_id=DirectoryId(b"\x0a" * 16)))
            assert restored(replica, backup, plan) == NEW_END
            replica.lose_power(Survival.NOTHING)
        assert read_plan(disk, DIRECTORY) is None
        recovered = replica.open()
        assert (recovered.state.end, recovered.meta) == (NEW_END, plan.after)
        assert recovered.state.voters[-1].voters == replace(plan, voters_before=THREE).voters
    assert calls > 60
