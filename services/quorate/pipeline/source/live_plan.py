"""Plans parallel fetches from a live quorum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from quorate.pipeline.source.live_log import LogEnds, live_log
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
from quorate.pipeline.source.splits import Split
from quorate.records.value_types import value_type
from quorate.storage.layout import checkpoint_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.pipeline.source.live_log import LiveLog
    from quorate.pipeline.source.options import Options
    from quorate.records.ids import ClusterId, OffsetAndEpoch

    Place: TypeAlias = str | AtOffset | AtTime | SnapshotAt

# The offsets per task. One leader serves all tasks, so smaller ones gain nothing.
RANGE_OFFSETS: Final = 500_000
QUORUMS_LOG: Final = "the quorum's log"
"""The name of the log in messages."""


@value_type
class LiveRange:
    """Records from `low` up to, not including, `high`; or a snapshot, at its last offset.

    `cluster_id` is the expected cluster: another quorum may have the addresses when it is read.
    """

    low: int
    high: int
    snapshot_id: OffsetAndEpoch | None = None
    cluster_id: ClusterId | None = None


def plan_live(options: Options) -> list[LiveRange]:
    """Plan the read of the committed records that the options select. Raises QuorumError."""
    if not options.is_committed_only:
        raise OptionError(
            "isolation: a live quorum gives what is committed; read_uncommitted needs a path"
        )
    with live_log(options) as log:
        ends = log.ends()
        check_reached(options, QUORUMS_LOG, ends.end)
        high = min(_offset_of(log, END, options.end, ends, ends.end), ends.end)
        if isinstance(options.start, str | SnapshotAt):
            snapshot_id, low = beginning(options, ends)
            if snapshot_id is not None:
                places: dict[str, Place] = {END: options.end, START: options.start}
                for name, place in places.items():
                    if _is_before(log, name, place, ends, low):
                        raise gone_error(name, place, QUORUMS_LOG, low)
        else:
            snapshot_id, low = None, _offset_of(log, START, options.start, ends, ends.start)
            if low < ends.start:
                raise gone_error(START, low, QUORUMS_LOG, ends.start)
        cluster_id = log.cluster_id()
    ranges = [snapshot_range(snapshot_id)] if snapshot_id is not None else []
    return of_cluster(cluster_id, [*ranges, *log_ranges(low, high, options.tasks_max)])


def live_time_warnings(options: Options) -> list[str]:
    """A warning for each time in the options at which the log's times go back."""
    if not options.times:
        return []
    with live_log(options) as log:
        ends = log.ends()
        found = (
            log.time_place(time.timestamp_ms, ends).warning(name, time, QUORUMS_LOG)
            for name, time in options.times.items()
        )
        return [warning for warning in found if warning is not None]


def beginning(options: Options, ends: LogEnds) -> tuple[OffsetAndEpoch | None, int]:
    """The snapshot to start with, if any, and the first offset after it.

    A quorum with a complete log names no snapshot; it is read from its first record.
    """
    if options.start == "latest":
        return None, ends.end
    if ends.snapshot_id is not None:
        return ends.snapshot_id, ends.snapshot_id.offset
    return None, 0


def log_ranges(low: int, high: int, tasks_max: int | None = None) -> list[LiveRange]:
    """Divide the offsets from `low` up to `high` into at most `tasks_max` parts."""
    size = RANGE_OFFSETS if tasks_max is None else max(RANGE_OFFSETS, -(-(high - low) // tasks_max))
    return [LiveRange(start, min(high, start + size)) for start in range(low, high, size)]


def snapshot_range(snapshot_id: OffsetAndEpoch) -> LiveRange:
    """The range for a snapshot."""
    return LiveRange(snapshot_id.offset - 1, snapshot_id.offset, snapshot_id)


def of_cluster(cluster_id: ClusterId, ranges: Iterable[LiveRange]) -> list[LiveRange]:
    """Set the expected cluster of the ranges."""
    return [replace(each, cluster_id=cluster_id) for each in ranges]


def range_split(wanted: LiveRange) -> Split:
    """The split of a range, for the decoder."""
    snapshot_id = wanted.snapshot_id
    return Split(
        path="" if snapshot_id is None else checkpoint_name(snapshot_id),
        source_node=None,
        start=0,
        end=0,
        first_offset=None,
        next_offset=None,
        low=wanted.low,
        high=wanted.high,
        snapshot_offset=None if snapshot_id is None else snapshot_id.offset - 1,
    )


def _is_before(log: LiveLog, option: str, place: Place, ends: LogEnds, snapshot_end: int) -> bool:
    """True if a position selects a state that is older than the newest snapshot."""
    match place:
        case SnapshotAt(place=inner):
            return _is_before(log, option, inner, ends, snapshot_end)
        case AtOffset(offset=offset):
            return offset < snapshot_end
        case AtTime(timestamp_ms=timestamp_ms):
            # The times of records below the log start are unknown.
            return log.time_place(timestamp_ms, ends).of(option) <= snapshot_end
        case _:
            return False


def _offset_of(
    log: LiveLog, option: str, place: str | AtOffset | AtTime, ends: LogEnds, default: int
) -> int:
    match place:
        case AtOffset(offset=offset):
            return offset
        case AtTime(timestamp_ms=timestamp_ms):
            found = log.time_place(timestamp_ms, ends)
            return found.chosen(option, place, QUORUMS_LOG)
        case _:
            return default
