"""The log of several voters' directories as one: each record is read from one that holds it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.pipeline.source.coverage import Span, cover, covered_from, longest
from quorate.pipeline.source.directories import newest_snapshot
from quorate.pipeline.source.seeking import offset_at
from quorate.pipeline.source.splits import log_splits, snapshot_splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.pipeline.source.committed import SharedLog
    from quorate.pipeline.source.directories import SnapshotFile
    from quorate.pipeline.source.splits import Split
    from quorate.records.ids import OffsetAndEpoch


def preferred(log: SharedLog, path: str | None = None) -> Span:
    """The span of the directory of this path, or else of the one that holds the most."""
    kept = (span for span in log.spans if log.directories[span.voter].path == path)
    return next(kept, None) or longest(log.spans)


def choice_words(log: SharedLog) -> str:
    """The sentence about which directory is read, what it holds, and what comes from others."""
    spans = readable(log)
    chosen = spans[preferred(log).voter]
    path = log.directories[chosen.voter].path
    words = f"of {len(spans)} directories {path} is read, which holds the most: {_offsets(chosen)}"
    for part in cover(spans, covered_from(spans, log.end), log.end, chosen):
        if part.voter != chosen.voter:
            words += f", and {_offsets(part)} of {log.directories[part.voter].path}"
    return words


def _offsets(span: Span) -> str:
    return f"offsets {span.begin} to {span.end - 1}"


def readable(log: SharedLog) -> list[Span]:
    """The spans of all directories, with records that are in a segment and in a snapshot."""
    return [
        replace(span, begin=segments[0].base_offset if segments else span.end)
        for span in log.spans
        for segments in [log.directories[span.voter].segments]
    ]


def newest_of_all(log: SharedLog, high: int) -> tuple[SnapshotFile | None, int]:
    """The newest snapshot that ends at or below `high`, or how the log begins where none does."""
    found = [newest_snapshot(directory, high) for directory in log.directories]
    newest = max(
        (each for each in found if each[1] <= high), key=lambda each: each[1], default=None
    )
    return newest or log.start()


def place_of_time(log: SharedLog, timestamp_ms: int, chosen: Span) -> int:
    """The first batch with a record of this time or later; the log's end if there is none."""
    for part in cover(log.spans, log.start()[1], log.end, chosen):
        offset = offset_at(log.directories[part.voter], timestamp_ms)
        if offset < part.end:
            return max(offset, part.begin)
    return log.end


def merged_parts(log: SharedLog, low: int, high: int, chosen: Span) -> list[Span]:
    """The spans that are read from `low` up to `high`; `chosen` is one of `readable`."""
    parts = cover(readable(log), low, high, chosen) or [Span(chosen.voter, low, high)]
    # What no directory has by now is missed behind the last part.
    parts[-1] = replace(parts[-1], end=max(high, parts[-1].end))
    return parts


def merged_splits(log: SharedLog, parts: Sequence[Span], split_bytes: int) -> list[Split]:
    """The records of these parts; each has to reach its end, and knows who else may have it."""
    splits: list[Split] = []
    for part in parts:
        found = log_splits(log.directories[part.voter], part.begin, part.end, split_bytes)
        found[-1:] = [replace(split, reach=part.end) for split in found[-1:]]
        splits += log.mendable(part.voter, found)
    return splits


def snapshot_of_any(
    log: SharedLog, wanted: OffsetAndEpoch, chosen: Span, split_bytes: int
) -> list[Split] | None:
    """A whole snapshot, of the chosen directory if it has it; None where no directory has."""
    for directory in (log.directories[chosen.voter], *log.directories):
        for snapshot in directory.snapshots:
            if snapshot.snapshot_id == wanted:
                return snapshot_splits(directory, snapshot, split_bytes)
    return None
