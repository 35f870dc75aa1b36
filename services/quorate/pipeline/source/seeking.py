"""Places in a log on a disk: where it ends, and which offset a time has.

Headers are read one after the other from a place close by, not the log from its beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.directories import header_at
from quorate.pipeline.source.splits import boundaries
from quorate.records.batch import CorruptBatchError
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.pipeline.source.directories import Directory, LogFile
    from quorate.records.batch import BatchHeader

_STEP_BYTES: Final = 1024 * 1024


def log_end(directory: Directory) -> int:
    """The offset behind the last batch, as far as the last segment's headers tell."""
    end = max((s.snapshot_id.offset for s in directory.snapshots), default=0)
    for segment in directory.segments[-1:]:
        end = max(end, segment.base_offset)
        for header in _headers_from(segment, _last_place(segment)):
            end = max(end, header.last_offset + 1)
    return end


def offset_at(directory: Directory, timestamp_ms: int) -> int:
    """The first batch with a record at this time or later; the log's end where there is none."""
    candidates = directory.segments
    for index in range(len(candidates) - 1, -1, -1):
        first = next(_headers_from(candidates[index], 0), None)
        if first is not None and first.max_timestamp_ms < timestamp_ms:
            candidates = candidates[index:]
            break
    for segment in candidates:
        for header in _headers_from(segment, _place_before(segment, timestamp_ms)):
            if header.max_timestamp_ms >= timestamp_ms:
                return header.base_offset
    return log_end(directory)


def _places(segment: LogFile) -> list[tuple[int, int]]:
    try:
        return boundaries(
            segment.path, segment.size_bytes, _STEP_BYTES, first=segment.base_offset, last=None
        )
    except (OSError, StorageError):
        return [(0, segment.base_offset)]


def _last_place(segment: LogFile) -> int:
    return _places(segment)[-1][0]


def _place_before(segment: LogFile, timestamp_ms: int) -> int:
    place = 0
    for position, _ in _places(segment):
        header = next(_headers_from(segment, position), None)
        if header is None or header.max_timestamp_ms >= timestamp_ms:
            break
        place = position
    return place


def _headers_from(segment: LogFile, position: int) -> Iterator[BatchHeader]:
    """Headers from `position` on, up to the first that is none."""
    try:
        file = OsFileSystem().open(segment.path)
    except (OSError, StorageError):
        return
    try:
        while position < segment.size_bytes:
            header = header_at(file, position)
            if position + header.size_bytes > segment.size_bytes:
                return
            yield header
            position += header.size_bytes
    except (CorruptBatchError, OSError):
        return
    finally:
        file.close()
