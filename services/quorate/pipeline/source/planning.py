"""From options and directories to splits: where reading begins and ends, and in which parts.

A log begins where its oldest whole snapshot ends, unless it has all of its first records: what a
segment still holds below that was deleted logically. `snapshot` begins with the newest whole
snapshot at or below the end, so that what is read is the state there and little more. Places whose
records were deleted are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.pipeline.source.committed import shared_log
from quorate.pipeline.source.directories import (
    covered_until_ms,
    find_directories,
    log_start,
    newest_snapshot,
)
from quorate.pipeline.source.options import (
    END,
    START,
    AtOffset,
    AtTime,
    OptionError,
    SnapshotAt,
    check_reached,
    gone_error,
)
from quorate.pipeline.source.seeking import EndSeeker, log_end, offset_at
from quorate.pipeline.source.splits import Split, boundaries
from quorate.records.value import value

if TYPE_CHECKING:
    from quorate.pipeline.source.damage import Damage
    from quorate.pipeline.source.directories import Directory, LogFile, SnapshotFile
    from quorate.pipeline.source.options import Options

NO_END: Final = 2**63 - 1


@value
class ReadingPlan:
    """What is to be read of one directory, and what was found that cannot be."""

    splits: tuple[Split, ...]
    damages: tuple[tuple[Damage, int | None], ...]


def plan_batch(options: Options) -> ReadingPlan:
    """All that the options ask for, of every directory.

    Raises OptionError where it was deleted. Of a log that several directories share, one may have
    deleted what another still holds.
    """
    directories = find_directories(options.paths)
    highs = [NO_END] * len(directories)
    if options.is_committed_only and len(directories) > 1:
        log = shared_log(directories, EndSeeker())
        directories, highs = list(log.directories), [span.end for span in log.spans]
    _check_reached(options, directories)
    splits: list[Split] = []
    damages: list[tuple[Damage, int | None]] = []
    refusals: list[tuple[int, OptionError]] = []
    for directory, high in zip(directories, highs, strict=True):
        planner = _Planner(directory, options)
        try:
            splits += planner.plan(high)
        except OptionError as error:
            refusals.append((planner.begin, error))
            splits += planner.plan_rest(high)
        damages += [(damage, directory.node_id) for damage in directory.damages]
    if refusals and (len(refusals) == len(directories) or not options.is_committed_only):
        _, earliest = min(refusals, key=lambda refusal: refusal[0])
        raise earliest
    return ReadingPlan(tuple(splits), tuple(damages))


def _check_reached(options: Options, directories: list[Directory]) -> None:
    """Raises OptionError for an offset that lies behind the end of each of the logs."""
    if not any(isinstance(place, AtOffset) for place in (options.start, options.end)):
        return
    end = max(map(log_end, directories))
    # What cannot be read may reach further.
    if not any(damage.is_unread for directory in directories for damage in directory.damages):
        where = ", ".join(directory.path for directory in directories)
        check_reached(options, f"the log in {where}", end)


def log_splits(directory: Directory, low: int, high: int, split_bytes: int) -> list[Split]:
    """The segments' records from `low` up to `high`, exclusive."""
    splits = []
    segments = directory.segments
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        if segment.base_offset >= high or (following is not None and following <= low):
            continue
        splits += [
            split
            for split in _segment_splits(directory, segment, following, low, high, split_bytes)
            if split.low < split.high
        ]
    return splits


def snapshot_splits(directory: Directory, snapshot: SnapshotFile, split_bytes: int) -> list[Split]:
    """A whole snapshot."""
    places = boundaries(snapshot.path, snapshot.size_bytes, split_bytes, first=0, last=None)
    ends = [*places[1:], (snapshot.size_bytes, None)]
    return [
        Split(
            path=snapshot.path,
            source_node=directory.node_id,
            start=start,
            end=end,
            first_offset=first,
            next_offset=following,
            low=-1,
            high=NO_END,
            snapshot_offset=snapshot.snapshot_id.offset - 1,
        )
        for (start, first), (end, following) in zip(places, ends, strict=True)
    ]


def _segment_splits(
    directory: Directory,
    segment: LogFile,
    following: int | None,
    low: int,
    high: int,
    split_bytes: int,
) -> list[Split]:
    first = segment.base_offset
    places = boundaries(segment.path, segment.size_bytes, split_bytes, first=first, last=following)
    ends = [*places[1:], (segment.size_bytes, following)]
    return [
        Split(
            path=segment.path,
            source_node=directory.node_id,
            start=start,
            end=end,
            first_offset=begin,
            next_offset=behind,
            low=low,
            high=high,
        )
        for (start, begin), (end, behind) in zip(places, ends, strict=True)
        if begin < high and (behind is None or behind > low)
    ]


class _Planner:
    def __init__(self, directory: Directory, options: Options) -> None:
        self.directory = directory
        self.options = options
        self.first_snapshot, self.begin = log_start(directory)
        self.end = self.offset_of(options.end)

    def plan(self, high: int) -> list[Split]:
        """Raises OptionError where something was deleted that the options ask for."""
        high = min(high, self.end)
        snapshot, low = self.beginning(high)
        if low < min(self.begin, high):
            raise self.gone(low)
        splits = []
        if snapshot is not None:
            splits += snapshot_splits(self.directory, snapshot, self.options.split_bytes)
        return [*splits, *log_splits(self.directory, low, high, self.options.split_bytes)]

    def plan_rest(self, high: int) -> list[Split]:
        """What is there behind records that were deleted."""
        high = min(high, self.end)
        return log_splits(self.directory, self.begin, high, self.options.split_bytes)

    def beginning(self, high: int) -> tuple[SnapshotFile | None, int]:
        """The snapshot to read first, and from which offset on the log is read."""
        match self.options.start:
            case AtOffset() | AtTime() as place:
                return None, self.offset_of(place)
            case "latest":
                return None, log_end(self.directory)
            case "snapshot":
                asked, found = self.end, newest_snapshot(self.directory, high)
            case SnapshotAt(place=place):
                asked = min(self.end, self.offset_of(place))
                found = newest_snapshot(self.directory, min(high, asked))
            case _:
                asked, found = self.end, (self.first_snapshot, self.begin)
        if found[1] > asked:
            raise self.gone(found[1])
        return found

    def offset_of(self, place: str | AtOffset | AtTime) -> int:
        """The offset of a place: below the log's begin for a time that deleted records may have."""
        match place:
            case AtOffset(offset=offset):
                return offset
            case AtTime(timestamp_ms=timestamp_ms):
                offset = offset_at(self.directory, timestamp_ms)
                is_first = self.begin > 0 and offset <= self.begin
                return self.begin - 1 if is_first and self.is_covered(timestamp_ms) else offset
            case _:
                return NO_END

    def is_covered(self, timestamp_ms: int) -> bool:
        """True if records below the log's begin may be of this time or later."""
        snapshot = self.first_snapshot
        until_ms = None if snapshot is None else covered_until_ms(snapshot)
        return until_ms is None or timestamp_ms <= until_ms

    def gone(self, low: int) -> OptionError:
        """The refusal of the option whose place lies below the log's begin."""
        option: str = START
        place: object = self.options.start
        if self.end < self.begin:
            option, place = END, self.options.end
        elif isinstance(place, str):
            place = f"what follows snapshot {low}"
        ends = [snapshot.snapshot_id.offset for snapshot in self.directory.snapshots]
        older = " or ".join(str(end) for end in ends if 0 < end < self.begin)
        more = f"; {START}=snapshot with {END}={older} reads an older snapshot" if older else ""
        return gone_error(option, place, f"the log in {self.directory.path}", self.begin, more)
