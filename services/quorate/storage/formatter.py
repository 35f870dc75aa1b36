"""Formats a metadata log directory: identity, bootstrap metadata, initial voters.

meta.properties is written last: a directory that has it is completely formatted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.value_types import keyword_value_type
from quorate.storage import layout
from quorate.storage.disaster_recovery.recovery_plan import check_no_unfinished_recovery
from quorate.storage.errors import StorageError
from quorate.storage.file_system import remove_durably, write_atomically
from quorate.storage.meta_properties import (
    MetaProperties,
    ensure_partition_metadata,
    read_meta,
    write_meta,
)
from quorate.storage.pod_domain import write_pod_domain
from quorate.storage.snapshots.writer import SnapshotWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import FileSystem
    from quorate.storage.pod_domain import PodDomain

_KRAFT_VERSION = 1


@keyword_value_type
class Formatting:
    """The content to write. `records` are the encoded bootstrap metadata, metadata.version first.

    `voters` are the initial voters (kraft.version 1), None for a node that will join. At
    kraft.version 0 the voters are in the settings, and `is_first_bootstrap` lets an empty directory
    vote (rule `empty_log_abstains`): never set it for a disk that replaces a lost one. `pod_domain`
    is the pod to which the directory belongs, None if that is unknown.
    """

    meta: MetaProperties
    records: Sequence[bytes]
    voters: VoterSet | None = None
    is_first_bootstrap: bool = False
    pod_domain: PodDomain | None = None


def format_directory(
    fs: FileSystem, metadata_log_dir: str, formatting: Formatting, *, timestamp_ms: int
) -> None:
    """Format a directory, durable on return. Raises StorageError if it is formatted already."""
    path = f"{metadata_log_dir}/{layout.META_PROPERTIES}"
    log_dir = f"{metadata_log_dir}/{layout.LOG_DIR}"
    check_unused(fs, metadata_log_dir)
    _write(
        fs, f"{metadata_log_dir}/{layout.BOOTSTRAP_CHECKPOINT}", formatting.records, timestamp_ms
    )
    checkpoint = f"{log_dir}/{layout.checkpoint_name(layout.BOOTSTRAP_ID)}"
    if formatting.voters is None:
        remove_durably(fs, checkpoint)
    else:
        _write(fs, checkpoint, (), timestamp_ms, formatting.voters)
    mark = f"{metadata_log_dir}/{layout.FIRST_BOOTSTRAP}"
    if formatting.is_first_bootstrap:
        write_atomically(fs, mark, b"")
    else:
        remove_durably(fs, mark)
    # The rival that an earlier replica found in this directory (rule `sole_voter_conflict`).
    remove_durably(fs, f"{metadata_log_dir}/{layout.RIVAL}")
    # Written before the directory counts as formatted: every copy of it then names its pod.
    if formatting.pod_domain is None:
        remove_durably(fs, f"{metadata_log_dir}/{layout.POD_DOMAIN}")
    else:
        write_pod_domain(fs, metadata_log_dir, formatting.pod_domain)
    ensure_partition_metadata(fs, f"{log_dir}/{layout.PARTITION_METADATA}")
    write_meta(fs, path, formatting.meta)


def check_unused(fs: FileSystem, metadata_log_dir: str) -> None:
    """Raise StorageError if a directory is formatted already, or has been in use."""
    path = f"{metadata_log_dir}/{layout.META_PROPERTIES}"
    log_dir = f"{metadata_log_dir}/{layout.LOG_DIR}"
    check_no_unfinished_recovery(fs, metadata_log_dir)
    fs.make_dirs(log_dir)
    if fs.exists(path):
        present = read_meta(fs, path)
        raise StorageError(f"{path}: the directory is formatted already, for {present}")
    for name in fs.list_dir(log_dir):
        if layout.parse_segment(name) is not None or name == layout.QUORUM_STATE:
            raise StorageError(
                f"{log_dir}/{name} exists, though {path} does not: this directory has been in use. "
                "Restore meta.properties, or format an empty directory"
            )


def _write(
    fs: FileSystem,
    path: str,
    records: Sequence[bytes],
    timestamp_ms: int,
    voters: VoterSet | None = None,
) -> None:
    writer = SnapshotWriter(
        fs,
        path,
        layout.BOOTSTRAP_ID,
        timestamp_ms=timestamp_ms,
        last_contained_log_timestamp_ms=0 if voters is None else timestamp_ms,
        kraft_version=0 if voters is None else _KRAFT_VERSION,
        voters=voters,
    )
    writer.append(records)
    writer.freeze()
