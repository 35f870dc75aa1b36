"""Places in a log on a disk: where it ends, and which offset a time has.

Batches are checked one after the other from a place close by, not the log from its beginning. What
does not check is passed over, and a file that cannot be read is noted as damage of its directory.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.damage import Damage, words_of
from quorate.pipeline.source.epochs import LogEpochs
from quorate.pipeline.source.splits import boundaries, whole_batch_at
from quorate.records.value import value
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem
from quorate.storage.scan import salvage_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.pipeline.source.directories import Directory, LogFile
    from quorate.raft.messages import EpochStart
    from quorate.records.batch import BatchHeader

_STEP_BYTES: Final = 1024 * 1024


@value
class _Place:
    """A whole batch in the last segment of a log, and the file as it was seen then."""

    path: str
    inode: tuple[int, int]
    size_bytes: int
    position: int
    offset: int

    def is_in(self, segment: LogFile, status: os.stat_result | None) -> bool:
        """True if the segment is still that file, which has only grown since."""
        return (
            status is not None
            and self.path == segment.path
            and self.inode == (status.st_dev, status.st_ino)
            and self.size_bytes <= status.st_size
        )


class EndSeeker:
    """Finds where logs end, and remembers a batch close to each end: the next look begins there."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._last_epochs: dict[str, int] = {}
        self._epochs = LogEpochs()

    def epochs_of(self, directory: Directory) -> tuple[EpochStart, ...]:
        """Each epoch of a log and where it begins, once its end has been found."""
        return self._epochs.of(directory, self._last_epochs.get(directory.path))

    def log_end(self, directory: Directory) -> int:
        """The offset behind the last batch that checks, as far as the last segment tells.

        What does not check behind that one may be on its way to the disk.
        """
        end = max((s.snapshot_id.offset for s in directory.snapshots), default=0)
        return max(end, self.segments_end(directory))

    def segments_end(self, directory: Directory) -> int:
        """The same without its snapshots; 0 where there is no segment."""
        return max((self._segment_end(directory, s) for s in directory.segments[-1:]), default=0)

    def _segment_end(self, directory: Directory, segment: LogFile) -> int:
        status = _status(segment)
        (position, end), found = self._last_batches(directory, segment, status)
        place = None
        for index, (at, header) in enumerate(found):
            if header.base_offset == end:
                place = at, end
            behind = found[index + 1][1].base_offset if index + 1 < len(found) else None
            if behind == end + header.record_count:
                # Also where its own offset is flipped.
                end = behind
            # Bytes that do not check hold as many records at most. Any other offset counts as soon
            # as the batch behind it bears it out.
            elif header.base_offset - end <= at - position or behind == header.last_offset + 1:
                end = max(end, header.last_offset + 1)
            position = at + header.size_bytes
        if found:
            self._last_epochs[directory.path] = found[-1][1].epoch
        if status is not None and place is not None:
            inode = status.st_dev, status.st_ino
            self._places[directory.path] = _Place(segment.path, inode, status.st_size, *place)
        return end

    def _last_batches(
        self, directory: Directory, segment: LogFile, status: os.stat_result | None
    ) -> tuple[tuple[int, int], list[tuple[int, BatchHeader]]]:
        """A place in the segment with its offset, and the batches from there on."""
        known = self._places.get(directory.path)
        if known is not None and known.is_in(segment, status):
            start = known.position, known.offset
            found = list(_batches_from(directory, segment, known.position))
            # A log that was truncated and written again may have another batch there.
            if [(at, header.base_offset) for at, header in found[:1]] == [start]:
                return start, found
        start = _places(segment)[-1]
        return start, list(_batches_from(directory, segment, start[0]))


def log_end(directory: Directory) -> int:
    """The end of a log that is looked at once."""
    return EndSeeker().log_end(directory)


def _status(segment: LogFile) -> os.stat_result | None:
    with suppress(OSError):
        return os.stat(segment.path)
    return None


def offset_at(directory: Directory, timestamp_ms: int) -> int:
    """The first batch with a record at this time or later; the log's end where there is none."""
    candidates = directory.segments
    for index in range(len(candidates) - 1, -1, -1):
        if _is_before(directory, candidates[index], 0, timestamp_ms):
            candidates = candidates[index:]
            break
    reached: int | None = None
    for segment in candidates:
        position, expected = _place_before(directory, segment, timestamp_ms)
        # Where a segment is missing in front of this one, what it had may be that late.
        lost = reached if position == 0 else None
        found = _batches_from(directory, segment, position)
        for header, behind in pairwise(chain((header for _, header in found), (None,))):
            assert header is not None
            if header.max_timestamp_ms >= timestamp_ms:
                # With what is damaged in front of it, and whatever its own offset says.
                return expected if lost is None else min(expected, lost)
            lost = None
            following = None if behind is None else behind.base_offset
            if header.base_offset == expected or following == header.last_offset + 1:
                expected = header.last_offset + 1
            elif following == expected + header.record_count:
                expected = following
        reached = expected
    return log_end(directory)


def _places(segment: LogFile) -> list[tuple[int, int]]:
    return boundaries(
        segment.path, segment.size_bytes, _STEP_BYTES, first=segment.base_offset, last=None
    )


def _place_before(directory: Directory, segment: LogFile, timestamp_ms: int) -> tuple[int, int]:
    """A position, with its offset, of a batch in front of the first that is that late."""
    place = 0, segment.base_offset
    for position, offset in _places(segment):
        if not _is_before(directory, segment, position, timestamp_ms):
            break
        place = position, offset
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
