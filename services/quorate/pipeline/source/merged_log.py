"""The merged log of several voters' directories: each record comes from one that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.pipeline.source.coverage import Span, cover, covered_from, longest
from quorate.pipeline.source.damage import Damage
from quorate.pipeline.source.log_seek import time_sides
from quorate.pipeline.source.split_reader import read_split
from quorate.pipeline.source.splits import log_splits, snapshot_splits
from quorate.pipeline.source.time_search import TimePlace, of_copies, place_of
from quorate.storage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quorate.pipeline.source.committed_end import SharedLog
    from quorate.pipeline.source.directories import Directory, SnapshotFile
    from quorate.pipeline.source.splits import Split
    from quorate.records.ids import OffsetAndEpoch


def preferred(log: SharedLog, path: str | None = None) -> Span:
    """The span of the directory of this path, or else of the one with the most offsets."""
    kept = (span for span in log.spans if log.directories[span.voter].path == path)
    return next(kept, None) or longest(log.spans)


def choice_words(log: SharedLog) -> str:
    """The message that names the directory read, its offsets, and those from other ones."""
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
    """The spans of the segments of all directories, including records also in a snapshot."""
    return [
        replace(span, begin=segments[0].base_offset if segments else span.end)
        for span in log.spans
        for segments in [log.directories[span.voter].segments]
    ]


def unreplaced(log: SharedLog) -> Iterator[tuple[Damage, Directory]]:
    """Yield the damage of all directories, except files that another directory replaces."""
    held = readable(log)
    for voter, directory in enumerate(log.directories):
        others = [span for span in held if span.voter != voter]
        bases = [segment.base_offset for segment in directory.segments]
        for damage in directory.damages:
            name = damage.file.rpartition("/")[2]
            begin = layout.parse_segment(name)
            snapshot_id = layout.parse_checkpoint(name.removesuffix(layout.PART_SUFFIX))
            if begin is not None:
                behind = next((base for base in bases if base > begin), log.end)
                is_held = begin < behind and covered_from(others, behind) <= begin
            else:
                end = None if snapshot_id is None else snapshot_id.offset
                is_held = end is not None and any(
                    span.begin <= end <= span.end for span in log.spans if span.voter != voter
                )
            if not is_held:
                yield damage, directory


def lost_beginning(log: SharedLog) -> Damage | None:
    """The damage for records below the log's start if no intact snapshot replaces them."""
    snapshot, begin = log.start()
    if snapshot is not None or begin == 0:
        return None
    ends = [each.snapshot_id.offset for d in log.directories for each in d.snapshots]
    end = max((end for end in ends if end <= begin), default=0)
    what = f"snapshot {end} ends in front of that" if end else "no whole snapshot stands for them"
    reason = f"offsets {end} to {begin - 1} are missing: the log begins at {begin}, and {what}"
    return Damage(reason, log.place, 0, 0, end, is_unread=True, behind=begin)


def newest_of_all(log: SharedLog, high: int) -> tuple[SnapshotFile | None, int]:
    """The newest snapshot that ends at or below `high`, or else the start of the log.

    If no copy of a snapshot is intact, an older one is used, or the log from its first record.
    """
    start = log.start()
    copies = _copies_by_id(log, high)
    for wanted, found in copies.items():
        older = [each for each in copies if start[1] <= each.offset < wanted.offset]
        if wanted.offset < start[1] or not (older or start == (None, 0)):
            return found[0][1], int(wanted.offset)
        damages = [(directory, _damage_of(directory, copy)) for directory, copy in found]
        if any(damage is None for _, damage in damages):
            return found[0][1], int(wanted.offset)
        for directory, damage in damages:
            if damage is not None and damage not in directory.damages:
                directory.damages.append(damage)
    return start


def _copies_by_id(
    log: SharedLog, high: int
) -> dict[OffsetAndEpoch, list[tuple[Directory, SnapshotFile]]]:
    """All copies of the snapshots that end at or below `high`, the newest snapshot first."""
    found: dict[OffsetAndEpoch, list[tuple[Directory, SnapshotFile]]] = {}
    for directory in log.directories:
        for snapshot in directory.snapshots:
            if snapshot.snapshot_id.offset <= high:
                found.setdefault(snapshot.snapshot_id, []).append((directory, snapshot))
    return dict(sorted(found.items(), key=lambda item: item[0].offset, reverse=True))


def _damage_of(directory: Directory, snapshot: SnapshotFile) -> Damage | None:
    """The first damage in a snapshot, or None."""
    splits = snapshot_splits(directory, snapshot, snapshot.size_bytes + 1)
    found = (each for split in splits for each in read_split(split))
    return next((each for each in found if isinstance(each, Damage)), None)


def place_of_time(
    log: SharedLog, timestamp_ms: int, chosen: Span, high: int | None = None
) -> TimePlace:
    """The position of a time in the log up to `high`; the end if no record is that late."""
    begin, end = log.start()[1], log.end if high is None else min(high, log.end)
    parts = []
    for part in cover(log.spans, begin, end, chosen):
        holding = [each for each in log.spans if each.begin <= part.begin and each.end >= part.end]
        found = (
            time_sides(log.directories[each.voter], timestamp_ms, part.begin, part.end)
            for each in holding
        )
        parts.append(of_copies(list(found)))
    return place_of(parts, log.end)


def name_of(log: SharedLog) -> str:
    """The name of the log in messages."""
    return f"the log in {log.place}"


def merged_parts(log: SharedLog, low: int, high: int, chosen: Span) -> list[Span]:
    """The spans to read from `low` up to `high`; `chosen` is one of `readable`."""
    parts = cover(readable(log), low, high, chosen) or [Span(chosen.voter, low, high)]
    # Records that no directory has any more are reported as missing after the last part.
    parts[-1] = replace(parts[-1], end=max(high, parts[-1].end))
    return parts


def merged_splits(log: SharedLog, parts: Sequence[Span], split_bytes: int) -> list[Split]:
    """The splits of these parts; each must reach its end, and names alternative directories."""
    splits: list[Split] = []
    for part in parts:
        found = log_splits(log.directories[part.voter], part.begin, part.end, split_bytes)
        found[-1:] = [replace(split, reach=part.end) for split in found[-1:]]
        splits += log.mendable(part.voter, found)
    return splits


def snapshot_of_any(
    log: SharedLog, wanted: OffsetAndEpoch, chosen: Span, split_bytes: int
) -> list[Split] | None:
    """The splits of a snapshot, preferably of the chosen directory; None if no directory has it.

    An intact copy of another directory replaces a damaged one.
    """
    copies = [
        (directory, snapshot)
        for voter in dict.fromkeys((chosen.voter, *range(len(log.directories))))
        for directory in [log.directories[voter]]
        for snapshot in directory.snapshots
        if snapshot.snapshot_id == wanted
    ]
    if not copies:
        return None
    whole = (each for each in copies if len(copies) == 1 or _damage_of(*each) is None)
    return snapshot_splits(*next(whole, copies[0]), split_bytes)
