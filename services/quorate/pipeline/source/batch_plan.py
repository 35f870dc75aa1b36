"""Plans a batch read: range, snapshot, splits.

A log starts at the end of its oldest intact snapshot, unless it has all of its first records:
records of a segment below that count as deleted. The start `snapshot` is the newest intact snapshot
at or below the end, to read the state there and few other records. Positions of deleted records are
rejected.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.pipeline.source.committed_end import shared_log
from quorate.pipeline.source.directories import covered_until_ms, find_directories
from quorate.pipeline.source.log_seek import EndSeeker
from quorate.pipeline.source.merged_log import (
    lost_beginning,
    merged_parts,
    merged_splits,
    name_of,
    newest_of_all,
    place_of_time,
    preferred,
    readable,
    snapshot_of_any,
    unreplaced,
)
from quorate.pipeline.source.options import (
    END,
    START,
    AtOffset,
    AtTime,
    SnapshotAt,
    check_reached,
    gone_error,
)
from quorate.pipeline.source.splits import NO_END, log_splits
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.pipeline.source.committed_end import SharedLog
    from quorate.pipeline.source.damage import Damage
    from quorate.pipeline.source.directories import Directory, SnapshotFile
    from quorate.pipeline.source.options import OptionError, Options
    from quorate.pipeline.source.splits import Split


@value_type
class ReadingPlan:
    """The parts to read, and the damage found, each with the node id of its directory."""

    splits: tuple[Split, ...]
    damages: tuple[tuple[Damage, int | None], ...]


def plan_batch(options: Options) -> ReadingPlan:
    """Plan the read of each directory, or of all as one log. Raises OptionError."""
    directories = find_directories(options.paths)
    logs = _logs(options, directories)
    _check_reached(options, directories, max(log.end for log, _ in logs))
    splits = [split for log, high in logs for split in _Planner(log, options, high).plan()]
    found = [(damage, each.node_id) for log, _ in logs for damage, each in unreplaced(log)]
    if options.start in {"earliest", "snapshot"}:
        lost = ((lost_beginning(log), log.directories[0].node_id) for log, _ in logs)
        found += [(damage, node_id) for damage, node_id in lost if damage is not None]
    return ReadingPlan(tuple(splits), tuple(found))


def time_warnings(options: Options) -> list[str]:
    """A warning for each time in the options at which the times of a log go back."""
    if not options.times:
        return []
    found = (
        place_of_time(log, time.timestamp_ms, preferred(log), high).warning(
            name, time, name_of(log)
        )
        for log, high in _logs(options, find_directories(options.paths))
        for name, time in options.times.items()
    )
    return [warning for warning in found if warning is not None]


def _logs(options: Options, directories: Sequence[Directory]) -> list[tuple[SharedLog, int]]:
    """The log of each directory, or of all as one, and the end of the offsets to read."""
    seeker = EndSeeker()
    is_committed_only = options.is_committed_only
    if len(directories) > 1 and (options.merges_directories or is_committed_only):
        log = shared_log(directories, seeker, is_committed_only=is_committed_only)
        if options.merges_directories:
            return [(log, log.end)]
        logs = [shared_log([directory], seeker) for directory in log.directories]
        # A log that only lacks the last records is read to the common end, which reports the gap.
        return [
            (own, log.end if span.end == own.end else span.end)
            for own, span in zip(logs, log.spans, strict=True)
        ]
    return [(shared_log([directory], seeker), NO_END) for directory in directories]


def _check_reached(options: Options, directories: Sequence[Directory], end: int) -> None:
    """Raise OptionError for an offset after the end of all logs."""
    # Unreadable files may reach further.
    if not any(damage.is_unread for directory in directories for damage in directory.damages):
        where = ", ".join(directory.path for directory in directories)
        check_reached(options, f"the log in {where}", end)


class _Planner:
    def __init__(self, log: SharedLog, options: Options, high: int) -> None:
        self.log = log
        self.high = high
        self.options = options
        self.chosen = preferred(log)
        self.first_snapshot, self.begin = log.start()
        self.end = self.offset_of(END, options.end)

    def plan(self) -> list[Split]:
        """Plan the splits. Raises OptionError if the options select deleted records."""
        high = min(self.high, self.end)
        snapshot, low = self.beginning(high)
        if low < min(self.begin, high):
            raise self.gone(low)
        splits: list[Split] = []
        size_bytes = self.options.split_bytes
        if snapshot is not None:
            wanted = snapshot.snapshot_id
            splits += snapshot_of_any(self.log, wanted, self.chosen, size_bytes) or ()
        if len(self.log.directories) == 1:
            (directory,) = self.log.directories
            found = log_splits(directory, low, high, size_bytes)
            if self.log.end in {each.snapshot_id.offset for each in directory.snapshots}:
                # Segments that end before that snapshot lack the records in between.
                reach = min(high, self.log.end)
                found[-1:] = [replace(split, reach=reach) for split in found[-1:]]
            return [*splits, *self.log.mendable(0, found)]
        if low < high:
            parts = merged_parts(self.log, low, high, readable(self.log)[self.chosen.voter])
            splits += merged_splits(self.log, parts, size_bytes)
        return splits

    def beginning(self, high: int) -> tuple[SnapshotFile | None, int]:
        """The snapshot to read first, and the offset from which the log is read."""
        match self.options.start:
            case AtOffset() | AtTime() as place:
                return None, self.offset_of(START, place)
            case "latest":
                return None, self.log.end
            case "snapshot":
                asked, found = self.end, newest_of_all(self.log, high)
            case SnapshotAt(place=place):
                asked = min(self.end, self.offset_of(START, place))
                found = newest_of_all(self.log, min(high, asked))
            case _:
                asked, found = self.end, (self.first_snapshot, self.begin)
        if found[1] > asked:
            raise self.gone(found[1])
        return found

    def offset_of(self, option: str, place: str | AtOffset | AtTime) -> int:
        """The offset of an option's position.

        It is below the log's start for a time that deleted records may have.
        """
        match place:
            case AtOffset(offset=offset):
                return offset
            case AtTime(timestamp_ms=timestamp_ms):
                found = place_of_time(self.log, timestamp_ms, self.chosen, self.high)
                offset = found.chosen(option, place, name_of(self.log))
                return self.begin - 1 if self.is_gone(option, timestamp_ms, offset) else offset
            case _:
                return NO_END

    def is_gone(self, option: str, timestamp_ms: int, offset: int) -> bool:
        """True if deleted records may have the time of an option with this offset."""
        if self.begin == 0:
            return False
        snapshot = self.first_snapshot
        until_ms = None if snapshot is None else covered_until_ms(snapshot)
        if until_ms is None:
            return offset <= self.begin
        # If times go back, later records may have earlier times than the last deleted ones.
        is_first = offset <= self.begin or (
            option == START and isinstance(self.options.start, AtTime)
        )
        return is_first and timestamp_ms <= until_ms

    def gone(self, low: int) -> OptionError:
        """The error for the option whose position is below the log's start."""
        option: str = START
        place: object = self.options.start
        if self.end < self.begin:
            option, place = END, self.options.end
        elif isinstance(place, str):
            place = f"what follows snapshot {low}"
        ends = sorted(
            {each.snapshot_id.offset for log in self.log.directories for each in log.snapshots}
        )
        older = " or ".join(str(end) for end in ends if 0 < end < self.begin)
        more = f"; {START}=snapshot with {END}={older} reads an older snapshot" if older else ""
        if len(self.options.paths) > len(self.log.directories):
            more += "; mergeDirectories=true reads what another directory has"
        return gone_error(option, place, name_of(self.log), self.begin, more)
