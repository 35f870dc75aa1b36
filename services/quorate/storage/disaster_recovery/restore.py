"""Restores a backup into an empty directory as a single-voter quorum (rule `quorum_loss_recovery`).

A recovery plan is in progress from the first file to the last, so a controller never starts on a
partial restore. An interrupted restore starts over: the directory holds only the backup.
"""

from __future__ import annotations

from dataclasses import replace
from typing import IO, TYPE_CHECKING, Final

from quorate.raft.messages import ElectionState
from quorate.raft.replication.log_state import NO_VOTERS
from quorate.records.ids import OffsetAndEpoch, ReplicaKey
from quorate.storage import layout
from quorate.storage.disaster_recovery.backup_file import extract
from quorate.storage.disaster_recovery.quorum_recovery import execute_plan, new_epoch
from quorate.storage.disaster_recovery.recovery_plan import (
    ConsultedLog,
    RecoveryKind,
    RecoveryPlan,
    read_plan,
    write_plan,
)
from quorate.storage.errors import StorageError
from quorate.storage.file_system import remove_durably
from quorate.storage.meta_properties import MetaProperties, write_meta
from quorate.storage.quorum_state import write_quorum_state
from quorate.storage.recovery.recovery import examine
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from quorate.records.ids import ClusterId, DirectoryId, NodeId
    from quorate.records.voters import Endpoint
    from quorate.storage.disaster_recovery.backup_file import Manifest
    from quorate.storage.file_system import FileSystem

# Names that an empty directory may contain.
_NOT_COUNTED: Final = (layout.LOCK, layout.RESCUE + layout.TEMPORARY_SUFFIX, "lost+found")
_KRAFT_VERSION: Final = 1


def make_restore_plan(
    manifest: Manifest,
    source: str,
    *,
    node_id: NodeId,
    cluster_id: ClusterId,
    unpacked_as: DirectoryId,
    directory_id: DirectoryId,
    endpoints: tuple[Endpoint, ...],
    started_ms: int,
) -> RecoveryPlan:
    """Create the plan: unpack under an unused id, then become the single voter of a new quorum."""
    taken_from = manifest.meta
    return RecoveryPlan(
        kind=RecoveryKind.RESTORE,
        started_ms=started_ms,
        before=MetaProperties(node_id, taken_from.cluster_id, unpacked_as),
        after=MetaProperties(node_id, cluster_id, directory_id),
        end=manifest.end,
        epoch=new_epoch([manifest.epoch]),
        endpoints=endpoints,
        voters_before=NO_VOTERS,
        witnesses=(
            ConsultedLog(
                source=source,
                key=ReplicaKey(taken_from.node_id, taken_from.directory_id),
                epoch=manifest.epoch,
                end=manifest.end,
                highest_end=manifest.end,
            ),
        ),
    )


def check_empty(fs: FileSystem, directory: str) -> None:
    """Raise StorageError if the directory holds anything but an interrupted restore."""
    if not fs.exists(directory):
        return
    plan = read_plan(fs, directory)
    if plan is not None and plan.kind is RecoveryKind.RESTORE:
        return
    names = [name for name in fs.list_dir(directory) if name not in _NOT_COUNTED]
    if names:
        raise StorageError(
            f"{directory} is not empty, it holds {names[0]}: a backup is restored into an empty"
            " directory. Move what is there away, or name another metadata.log.dir"
        )


def restore(
    fs: FileSystem, directory: str, plan: RecoveryPlan, backup: IO[bytes], *, timestamp_ms: int
) -> OffsetAndEpoch:
    """Restore a verified backup; return the new log end. Raises StorageError."""
    check_empty(fs, directory)
    log_dir = f"{directory}/{layout.LOG_DIR}"
    fs.make_dirs(directory)
    write_plan(fs, directory, plan)
    fs.make_dirs(log_dir)
    for name in (layout.META_PROPERTIES, layout.FLUSHED_END, layout.BOOTSTRAP_CHECKPOINT):
        remove_durably(fs, f"{directory}/{name}")
    for name in fs.list_dir(log_dir):
        fs.remove(f"{log_dir}/{name}")
    witness = plan.witnesses[0]
    extract(backup, witness.source, fs, directory)
    write_quorum_state(
        fs,
        f"{log_dir}/{layout.QUORUM_STATE}",
        ElectionState(witness.epoch),
        kraft_version=_KRAFT_VERSION,
        voters=NO_VOTERS,
    )
    write_meta(fs, f"{directory}/{layout.META_PROPERTIES}", plan.before)
    state = examine(fs, directory, StorageConfig(node_id=plan.before.node_id)).state
    if state.end != plan.end:
        raise StorageError(
            f"{directory}: the log of the backup ends at {state.end}, not at {plan.end} as it says:"
            " use another backup"
        )
    if state.voters:
        plan = replace(plan, voters_before=state.voters[-1].voters)
        write_plan(fs, directory, plan)
    return execute_plan(fs, directory, plan, timestamp_ms=timestamp_ms)
