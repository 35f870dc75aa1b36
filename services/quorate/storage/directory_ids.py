"""Finds the id of a directory whose meta.properties has none, as Kafka before 3.7 formatted it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.storage import layout
from quorate.storage.errors import DamagedSnapshotError
from quorate.storage.flushed_end import FlushedEndFile
from quorate.storage.meta_properties import lacks_directory_id

if TYPE_CHECKING:
    from quorate.records.ids import DirectoryId, NodeId
    from quorate.storage.file_system import FileSystem
    from quorate.storage.snapshots.snapshot_store import SnapshotStore
    from quorate.storage.storage_config import StorageConfig


def missing_directory_id(
    fs: FileSystem, directory: str, snapshots: SnapshotStore, config: StorageConfig
) -> DirectoryId | None:
    """Return the id to add to a directory without one.

    None if it has one, or if no file gives it and the settings contain no new id.
    """
    if not lacks_directory_id(fs, f"{directory}/{layout.META_PROPERTIES}"):
        return None
    told = _told_directory_id(fs, directory, snapshots, config.node_id)
    return told or config.new_directory_id


def _told_directory_id(
    fs: FileSystem, directory: str, snapshots: SnapshotStore, node_id: NodeId
) -> DirectoryId | None:
    """Return the id under which the log in `directory` was written, or None.

    flushed-end contains it if the log was in use here, the initial voters if Apache Kafka formatted
    the directory. The voter set identifies the disk by that id, so a different one would not do.
    """
    flushed_file = FlushedEndFile(fs, f"{directory}/{layout.FLUSHED_END}")
    flushed = flushed_file.load()
    flushed_file.close()
    if flushed is not None:
        return flushed.directory_id
    if not fs.exists(snapshots.path(layout.BOOTSTRAP_ID)):
        return None
    try:
        voters = snapshots.check(layout.BOOTSTRAP_ID).voters
    except DamagedSnapshotError:
        return None
    first = None if voters is None else voters.by_id(node_id)
    return None if first is None else first.key.directory_id
