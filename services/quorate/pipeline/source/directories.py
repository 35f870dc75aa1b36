"""Finds segments, snapshots and unreadable files of a log directory.

The directory is not changed, and damage is allowed: errors of single files are recorded. Only a
path that is not a directory of the metadata log is rejected.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Final

from quorate.controller.partitions.partition import UNASSIGNED_DIR
from quorate.pipeline.source.damage import Damage, describe_os_error
from quorate.pipeline.source.options import OptionError
from quorate.records.batch import HEADER_BYTES, CorruptBatchError, check_batch, read_header
from quorate.records.control import SnapshotFooter, SnapshotHeader, control_records
from quorate.records.value_types import value_type
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import is_metadata_partition, read_meta

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from quorate.records.batch import BatchHeader
    from quorate.records.ids import ClusterId, OffsetAndEpoch
    from quorate.storage.file_system import File

# A footer's batch takes 61 bytes and one small record.
_FOOTER_BYTES_MAX: Final = 256
_SETTLED_NS: Final = 2_000_000_000
_PATTERN: Final = re.compile(r"[*?\[{]")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")


@value_type
class LogFile:
    """A segment: its path, the offset in its name, and its size when it was listed."""

    path: str
    base_offset: int
    size_bytes: int


@value_type
class SnapshotFile:
    """A snapshot with a footer, so its end is present."""

    path: str
    snapshot_id: OffsetAndEpoch
    size_bytes: int


@dataclass(slots=True)
class Directory:
    """The contents of a directory; `segments` and `snapshots` are in order of their offsets.

    `damages` has the unreadable files. `node_id` and `cluster_id` are None without a readable
    meta.properties. `listing` (device, inode, modification time) detects changed names; None if it
    could not.
    """

    path: str
    node_id: int | None
    cluster_id: ClusterId | None = None
    segments: list[LogFile] = field(default_factory=list)
    snapshots: list[SnapshotFile] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    listing: tuple[int, int, int] | None = None


def find_directories(paths: Sequence[str], before: Iterable[Directory] = ()) -> list[Directory]:
    """Read the contents of each of `paths`, the directories of different voters of one cluster.

    Only the node identifies a log's rows, so two directories of one node would count as one log
    with every record twice. With the previous result `before`, unchanged files are not opened
    again. Raises OptionError.
    """
    known = {directory.path: directory for directory in before}
    found = [find_directory(path, known) for path in paths]
    for one, other in combinations(found, 2):
        both = f"path: {one.path} and {other.path} are"
        if os.path.realpath(one.path) == os.path.realpath(other.path):
            raise OptionError(f"{both} the same directory; name it once")
        if one.cluster_id and other.cluster_id and one.cluster_id != other.cluster_id:
            raise OptionError(
                f"{both} of different clusters, {one.cluster_id} and {other.cluster_id}, as their "
                f"{layout.META_PROPERTIES} say; read one cluster at a time"
            )
        if one.node_id != other.node_id:
            continue
        if one.node_id is None:
            raise OptionError(
                f"path: neither {one.path} nor {other.path} says which voter's it is; put its "
                f"{layout.META_PROPERTIES} beside each {layout.LOG_DIR}, and let this user read it"
            )
        raise OptionError(
            f"{both} both of node {one.node_id}, as their {layout.META_PROPERTIES} say; name one "
            "directory of each voter"
        )
    return found


def find_directory(path: str, before: Mapping[str, Directory] | None = None) -> Directory:
    """Read the contents of `path`: `__cluster_metadata-0`, or its parent metadata.log.dir.

    Raises OptionError if it has no metadata log.
    """
    fs = OsFileSystem()
    path = path.rstrip("/") or "/"
    if os.path.exists(path) and not os.path.isdir(path):
        raise OptionError(f"path: {path} is a file; give the directory that holds it")
    for known in (path, f"{path}/{layout.LOG_DIR}"):
        found = _found_again(fs, before[known]) if before and known in before else None
        if found is not None:
            return found
    try:
        listing, names = _listing(path), fs.list_dir(path)
        if layout.LOG_DIR in names:
            path = f"{path}/{layout.LOG_DIR}"
            listing, names = _listing(path), fs.list_dir(path)
    except (OSError, StorageError) as error:
        said = f"{describe_os_error(error)}{_pattern_hint(path)}"
        raise OptionError(f"path: {path} cannot be listed: {said}") from error
    _refuse_other_partition(fs, path, names)
    found = Directory(path, node_id=None, listing=listing)
    _take_node_id(fs, found)
    for name in names:
        _take(fs, found, name)
    if not found.segments and not found.snapshots and not found.damages:
        raise OptionError(
            f"path: {path} holds no segment and no snapshot of a metadata log; name the "
            f"{layout.LOG_DIR} of a controller, or the metadata.log.dir that it is in"
        )
    return found


def log_start(directory: Directory) -> tuple[SnapshotFile | None, int]:
    """The snapshot that replaces deleted records, and the first offset after it."""
    if not directory.segments and directory.snapshots:
        newest = directory.snapshots[-1]
        return newest, newest.snapshot_id.offset
    first = directory.segments[0].base_offset if directory.segments else 0
    for snapshot in directory.snapshots:
        end = snapshot.snapshot_id.offset
        if end >= first:
            # The bootstrap checkpoint is at offset 0; it has the initial voters or is empty.
            return (snapshot, end) if end == 0 or first != 0 else (None, 0)
    return None, first


def covered_until_ms(snapshot: SnapshotFile) -> int | None:
    """The time of the last record that a snapshot covers; None if its header is unreadable."""
    try:
        size_bytes = read_header(read_at(snapshot.path, 0, HEADER_BYTES)).size_bytes
        first = read_at(snapshot.path, 0, min(size_bytes, snapshot.size_bytes))
        match control_records(first, 0, check_batch(first)):
            case (SnapshotHeader(last_contained_log_timestamp_ms=timestamp_ms), *_):
                return timestamp_ms
    except (OSError, StorageError, ValueError):
        pass
    return None


def read_at(path: str, position: int, size_bytes: int) -> bytes:
    """Read bytes of a file. Raises OSError or StorageError."""
    file = OsFileSystem().open(path)
    try:
        return file.read_at(position, size_bytes)
    finally:
        file.close()


def header_at(file: File, position: int) -> BatchHeader:
    """The header of the batch at `position`. Raises CorruptBatchError."""
    try:
        return read_header(file.read_at(position, HEADER_BYTES))
    except CorruptBatchError as error:
        raise CorruptBatchError(position, error.reason) from error


def _found_again(fs: OsFileSystem, before: Directory) -> Directory | None:
    """The same directory if its names have not changed and all files were readable, else None.

    Only the last segment is opened again, because it grows.
    """
    if before.listing is None or before.damages or _listing(before.path) != before.listing:
        return None
    found = Directory(before.path, node_id=None, listing=before.listing)
    _take_node_id(fs, found)
    found.segments += before.segments[:-1]
    found.snapshots += before.snapshots
    for segment in before.segments[-1:]:
        _take(fs, found, layout.segment_name(segment.base_offset))
    return found if len(found.segments) == len(before.segments) else None


def _listing(path: str) -> tuple[int, int, int] | None:
    """A value that changes with the names in a directory; None after a very recent change.

    A file system may record the same time for another change right after.
    """
    with suppress(OSError):
        status = os.stat(path)
        if time.time_ns() - status.st_mtime_ns > _SETTLED_NS:
            return status.st_dev, status.st_ino, status.st_mtime_ns
    return None


def _pattern_hint(path: str) -> str:
    """The hint for a path with patterns or escapes, which other sources would expand."""
    if _PATTERN.search(path):
        return "; no pattern is filled in: name each directory, separated by commas"
    if _ESCAPE.search(path):
        return "; a path is taken as it is written: write the character itself for %.."
    return ""


def _take(fs: OsFileSystem, found: Directory, name: str) -> None:
    path = f"{found.path}/{name}"
    whole = name.removesuffix(layout.PART_SUFFIX)
    base = layout.parse_segment(name)
    snapshot_id = layout.parse_checkpoint(whole)
    if base is None and snapshot_id is None:
        return
    try:
        file = fs.open(path)
    except (OSError, StorageError) as error:
        # A log in use may delete files between the listing and this call.
        if os.path.lexists(path):
            reason = f"cannot be opened: {describe_os_error(error)}"
            found.damages.append(Damage(reason, path, 0, 0, base, is_unread=True))
        return
    try:
        size_bytes = file.size()
        if base is not None:
            found.segments.append(LogFile(path, base, size_bytes))
        elif name != whole:
            reason = "half-downloaded: a snapshot that has not been installed"
            found.damages.append(Damage(reason, path, 0, size_bytes))
        elif snapshot_id is not None and _has_footer(file, size_bytes):
            found.snapshots.append(SnapshotFile(path, snapshot_id, size_bytes))
        else:
            reason = "half-written: a snapshot without a footer, so its end is missing"
            found.damages.append(Damage(reason, path, size_bytes, 0))
    except OSError as error:
        reason = f"cannot be read: {describe_os_error(error)}"
        found.damages.append(Damage(reason, path, 0, 0, base, is_unread=True))
    finally:
        file.close()


def _has_footer(file: File, size_bytes: int) -> bool:
    """True if the last batch of a snapshot has a footer."""
    start = max(0, size_bytes - _FOOTER_BYTES_MAX)
    tail = file.read_at(start, size_bytes - start)
    for at in range(len(tail) - HEADER_BYTES, -1, -1):
        try:
            header = check_batch(tail, at)
            controls = control_records(tail, at, header)
        except ValueError:
            continue
        return at + header.size_bytes == len(tail) and SnapshotFooter in map(type, controls)
    return False


def _take_node_id(fs: OsFileSystem, found: Directory) -> None:
    """Set the node id of the directory, if meta.properties next to the log has it."""
    above = found.path.rpartition("/")[0] or "."
    for place in (above, found.path):
        path = f"{place}/{layout.META_PROPERTIES}"
        try:
            # Kafka before 3.7 did not assign directory ids, and none is needed here.
            meta = read_meta(fs, path, new_directory_id=UNASSIGNED_DIR)
        except StorageError:
            continue
        except OSError as error:
            # Two directories of unknown nodes would count as one log.
            reason = f"whose directory this is cannot be read: {describe_os_error(error)}"
            found.damages.append(Damage(reason, path, 0, 0, is_unread=True))
            continue
        if meta is not None:
            found.node_id, found.cluster_id = meta.node_id, meta.cluster_id
            return


def _refuse_other_partition(fs: OsFileSystem, path: str, names: list[str]) -> None:
    if layout.PARTITION_METADATA not in names:
        return
    try:
        said = fs.read(f"{path}/{layout.PARTITION_METADATA}")
    except (OSError, StorageError):
        return
    if not is_metadata_partition(said):
        raise OptionError(
            f"path: {path} is the directory of another partition, as its "
            f"{layout.PARTITION_METADATA} says; name a {layout.LOG_DIR}"
        )
