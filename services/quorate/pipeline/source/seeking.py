"""Places in a log on a disk: where it ends, and which offset a time has.

Batches are checked one after the other from a place close by, not the log from its beginning. What
does not check is passed over, and a file that cannot be read is noted as damage of its directory.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.damage import Damage, words_of
from quorate.pipeline.source.splits import boundaries, whole_batch_at
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem
from quorate.storage.scan import salvage_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.pipeline.source.directories import Directory, LogFile
    from quorate.records.batch import BatchHeader

_STEP_BYTES: Final = 1024 * 1024


def log_end(directory: Directory) -> int:
    """The offset behind the last batch that checks, as far as the last segment tells.

    What does not check behind that one may be on its way to the disk.
    """
    end = max((s.snapshot_id.offset for s in directory.snapshots), default=0)
    for segment in directory.segments[-1:]:
        end = max(end, _segment_end(directory, segment))
    return end


def offset_at(directory: Directory, timestamp_ms: int) -> int:
    """The first batch with a record at this time or later; the log's end where there is none."""
    candidates = directory.segments
    for index in range(len(candidates) - 1, -1, -1):
        if _is_before(directory, candidates[index], 0, timestamp_ms):
            candidates = candidates[index:]
            break
    for segment in candidates:
        place = _place_before(directory, segment, timestamp_ms)
        for _, header in _batches_from(directory, segment, place):
            if header.max_timestamp_ms >= timestamp_ms:
                return header.base_offset
    return log_end(directory)


def _places(segment: LogFile) -> list[tuple[int, int]]:
    return boundaries(
        segment.path, segment.size_bytes, _STEP_BYTES, first=segment.base_offset, last=None
    )


def _segment_end(directory: Directory, segment: LogFile) -> int:
    position, end = _places(segment)[-1]
    found = list(_batches_from(directory, segment, position))
    for index, (at, header) in enumerate(found):
        behind = found[index + 1][1].base_offset if index + 1 < len(found) else None
        if behind == end + header.record_count:
            # Also where its own offset is flipped.
            end = behind
        # Bytes that do not check hold as many records at most. Any other offset counts as soon as
        # the batch behind it bears it out.
        elif header.base_offset - end <= at - position or behind == header.last_offset + 1:
            end = max(end, header.last_offset + 1)
        position = at + header.size_bytes
    return end


def _place_before(directory: Directory, segment: LogFile, timestamp_ms: int) -> int:
    place = 0
    for position, _ in _places(segment):
        if not _is_before(directory, segment, position, timestamp_ms):
            break
        place = position
    return place


def _is_before(directory: Directory, segment: LogFile, position: int, timestamp_ms: int) -> bool:
    """True if a whole batch begins here and none of its records is that late."""
    with _noting(directory, segment), closing(OsFileSystem().open(segment.path)) as file:
        header = whole_batch_at(file, position)
        return header is not None and header.max_timestamp_ms < timestamp_ms
    return False


def _batches_from(
    directory: Directory, segment: LogFile, position: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and headers of all that checks from `position` on."""
    with _noting(directory, segment), closing(OsFileSystem().open(segment.path)) as file:
        for batch in salvage_batches(file, segment.size_bytes, position):
            yield batch.position, batch.header


@contextmanager
def _noting(directory: Directory, segment: LogFile) -> Iterator[None]:
    """Note that a segment cannot be read, once."""
    try:
        yield
    except (OSError, StorageError) as error:
        reason = f"cannot be read: {words_of(error)}"
        damage = Damage(
            reason, segment.path, 0, segment.size_bytes, segment.base_offset, is_unread=True
        )
        if damage not in directory.damages:
            directory.damages.append(damage)
