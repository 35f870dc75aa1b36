"""Finds the log end, and the offset of a timestamp, in a log directory.

Batches are verified one after the other from a nearby position, not from the start of the log.
Invalid batches are skipped, and an unreadable file is recorded as damage of its directory.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.pipeline.source.damage import Damage, describe_os_error
from quorate.pipeline.source.record_epochs import LogEpochs
from quorate.pipeline.source.splits import batch_from, boundaries, whole_batch_at
from quorate.pipeline.source.time_search import (
    Mark,
    Sides,
    Stretch,
    sides_of,
    stretches,
)
from quorate.records.value_types import value_type
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.log.batch_scanner import resync_batches
from quorate.storage.log.run_scanner import salvage_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.pipeline.source.directories import Directory, LogFile
    from quorate.raft.messages import EpochStart
    from quorate.records.batch import BatchHeader
    from quorate.records.columnar.batch_run import BatchRun
    from quorate.storage.file_system import File

_STEP_BYTES: Final = 1024 * 1024
# In a log of at most this size, a time search reads every batch.
SHORT_BYTES: Final = 32 * 1024 * 1024


@value_type
class _Place:
    """A valid batch in the last segment of a log, and the file's state at that time."""

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
    """Finds log ends, and keeps a batch near each end, from which the next search starts."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._last_epochs: dict[str, int] = {}
        self._epochs = LogEpochs()

    def epochs_of(self, directory: Directory) -> tuple[EpochStart, ...]:
        """The epochs of a log and their start offsets; call it after the search for its end."""
        return self._epochs.of(directory, self._last_epochs.get(directory.path))

    def log_end(self, directory: Directory) -> int:
        """The offset after the last valid batch of the last segment, or of the newest snapshot.

        Invalid bytes after it may be a write in progress.
        """
        end = max((s.snapshot_id.offset for s in directory.snapshots), default=0)
        return max(end, self.segments_end(directory))

    def segments_end(self, directory: Directory) -> int:
        """The same without snapshots; 0 without a segment."""
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
                # Even if its own offset is corrupt.
                end = behind
            # Invalid bytes can have at most one record per byte. Any other offset counts only if
            # the following batch confirms it.
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
        """A position in the segment with its offset, and the batches from there on."""
        known = self._places.get(directory.path)
        if known is not None and known.is_in(segment, status):
            start = known.position, known.offset
            found = list(_batches_from(directory, segment, known.position))
            # A log that was truncated and rewritten may have another batch there.
            if [(at, header.base_offset) for at, header in found[:1]] == [start]:
                return start, found
        start = boundaries(
            segment.path, segment.size_bytes, _STEP_BYTES, first=segment.base_offset, last=None
        )[-1]
        return start, list(_batches_from(directory, segment, start[0]))


def log_end(directory: Directory) -> int:
    """The end of a log, for a single use."""
    return EndSeeker().log_end(directory)


def _status(segment: LogFile) -> os.stat_result | None:
    with suppress(OSError):
        return os.stat(segment.path)
    return None


def time_sides(directory: Directory, timestamp_ms: int, begin: int, end: int) -> Sides:
    """The sides of a time among the offsets from `begin` up to, not including, `end`.

    Damaged or missing records may have any time, so the late side starts before those that precede
    its first batch.
    """
    return sides_of(_stretches(directory, timestamp_ms), begin, end)


def _stretches(directory: Directory, timestamp_ms: int) -> Iterator[Stretch]:
    segments = directory.segments
    is_short = sum(segment.size_bytes for segment in segments) <= SHORT_BYTES
    reached: int | None = None
    begins = [_begin_of(directory, segment) for segment in segments]
    for segment, begin, behind in zip(segments, begins, [*begins[1:], None], strict=False):
        # If the previous segment is missing, its records may have any time.
        reached = segment.base_offset if reached is None else min(reached, segment.base_offset)
        with _noting(directory, segment), closing(OsFileSystem().open(segment.path)) as file:
            timed = _TimedSegment(file, timestamp_ms)
            last = replace(behind or Mark(0, None, None), at=segment.size_bytes)
            found = (
                timed.read(begin, last) if is_short else stretches(timed, begin, last, timestamp_ms)
            )
            for stretch in found:
                yield replace(stretch, begin=min(stretch.begin, reached))
                reached = stretch.end


def _begin_of(directory: Directory, segment: LogFile) -> Mark:
    header = None
    with _noting(directory, segment), closing(OsFileSystem().open(segment.path)) as file:
        header = whole_batch_at(file, 0)
    return Mark(0, segment.base_offset, header)


@value_type
class _TimedSegment:
    """A segment as the input of a time search; marks are positions in its file."""

    file: File
    timestamp_ms: int

    def between(self, first: Mark, last: Mark) -> Mark | None:
        if last.at - first.at <= _STEP_BYTES:
            return None
        assert first.offset is not None
        middle = (first.at + last.at) // 2
        place = batch_from(self.file, last.at, middle, first=first.offset, last=last.offset)
        return place and Mark(*place, whole_batch_at(self.file, place[0]))

    def read(self, first: Mark, last: Mark) -> Iterator[Stretch]:
        assert first.offset is not None
        expected = first.offset
        runs = salvage_runs(self.file, last.at, first.at)
        for run, behind in pairwise(chain(runs, (None,))):
            assert run is not None
            following = last.offset if behind is None else behind.first_offset
            places = [expected, *_offsets_behind(run, expected, following)]
            counts = run.field("record_count").tolist()
            is_late = run.field("max_timestamp_ms") >= self.timestamp_ms
            changes = [0, *(np.flatnonzero(np.diff(is_late)) + 1).tolist(), len(run)]
            for begin, end in pairwise(changes):
                at = max(places[begin], places[begin + 1] - counts[begin])
                yield Stretch(places[begin], places[end], bool(is_late[begin]), at)
            expected = places[-1]


def _offsets_behind(run: BatchRun, expected: int, following: int | None) -> list[int]:
    """The offsets expected after each batch of a run; a batch's corrupt offset has no effect.

    The first batch is expected at `expected`, and `following` is the start of the next run.
    """
    bases, lasts = run.field("base_offset"), run.last_offsets
    if bases[0] == expected and (bases[1:] == lasts[:-1] + 1).all():
        found: list[int] = (lasts + 1).tolist()
        return found
    found = []
    bases_behind = [*bases[1:].tolist(), following]
    counts = run.field("record_count").tolist()
    for base, last, count, behind in zip(
        bases.tolist(), lasts.tolist(), counts, bases_behind, strict=True
    ):
        if base == expected or behind == last + 1:
            expected = last + 1
        elif behind == expected + count:
            expected = behind
        elif behind is not None and expected <= last < behind:
            # With damage on both sides of the batch, no other information is left.
            expected = last + 1
        found.append(expected)
    return found


def _batches_from(
    directory: Directory, segment: LogFile, position: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each valid batch from `position` on."""
    with _noting(directory, segment), closing(OsFileSystem().open(segment.path)) as file:
        for batch in resync_batches(file, segment.size_bytes, position):
            yield batch.position, batch.header


@contextmanager
def _noting(directory: Directory, segment: LogFile) -> Iterator[None]:
    """Record an unreadable segment as damage, once."""
    try:
        yield
    except (OSError, StorageError) as error:
        reason = f"cannot be read: {describe_os_error(error)}"
        damage = Damage(
            reason, segment.path, 0, segment.size_bytes, segment.base_offset, is_unread=True
        )
        if damage not in directory.damages:
            directory.damages.append(damage)
