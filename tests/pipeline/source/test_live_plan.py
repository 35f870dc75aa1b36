"""Parts of a live log."""

from __future__ import annotations

from quorate.pipeline.source.live_log import LogEnds
from quorate.pipeline.source.live_plan import (
    RANGE_OFFSETS,
    LiveRange,
    beginning,
    log_ranges,
    of_cluster,
    range_split,
    snapshot_range,
)
from quorate.pipeline.source.options import parse_options
from quorate.records.ids import ClusterId, Epoch, Offset, OffsetAndEpoch

SNAPSHOT = OffsetAndEpoch(epoch=Epoch(3), offset=Offset(516))


def test_ranges_cover_the_log_without_a_gap() -> None:
    ranges = log_ranges(7, 2 * RANGE_OFFSETS + 8)
    assert [(each.low, each.high) for each in ranges] == [
        (7, RANGE_OFFSETS + 7),
        (RANGE_OFFSETS + 7, 2 * RANGE_OFFSETS + 7),
        (2 * RANGE_OFFSETS + 7, 2 * RANGE_OFFSETS + 8),
    ]
    assert log_ranges(7, 7) == []


def test_there_are_as_many_ranges_as_may_be_read_at_once() -> None:
    high = 5 * RANGE_OFFSETS + 3
    ranges = log_ranges(0, high, 2)
    assert [(each.low, each.high) for each in ranges] == [(0, high // 2 + 1), (high // 2 + 1, high)]
    assert len(log_ranges(0, high, 9)) == len(log_ranges(0, high)) == 6
    assert log_ranges(7, 7, 2) == []


def test_a_log_that_begins_late_begins_with_a_snapshot() -> None:
    options = parse_options({"bootstrap.servers": "h:1"})
    assert beginning(options, LogEnds(500, 600, SNAPSHOT)) == (SNAPSHOT, 516)
    assert beginning(options, LogEnds(0, 600, None)) == (None, 0)
    latest = parse_options({"bootstrap.servers": "h:1", "startingOffsets": "latest"})
    assert beginning(latest, LogEnds(500, 600, SNAPSHOT)) == (None, 600)


def test_a_snapshot_stands_at_its_last_offset_under_its_name() -> None:
    split = range_split(snapshot_range(SNAPSHOT))
    assert (split.snapshot_offset, split.path) == (
        515,
        "00000000000000000516-0000000003.checkpoint",
    )
    log = range_split(LiveRange(4, 9))
    assert (log.snapshot_offset, log.path, log.low, log.high) == (None, "", 4, 9)


def test_parts_are_of_one_cluster() -> None:
    parts = of_cluster(ClusterId("c"), [snapshot_range(SNAPSHOT), LiveRange(516, 520)])
    assert parts == [
        LiveRange(515, 516, SNAPSHOT, ClusterId("c")),
        LiveRange(516, 520, None, ClusterId("c")),
    ]
