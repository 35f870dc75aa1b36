"""Derives the committed end from the directories of several voters.

No disk has the committed offset, but a record on a majority of the voters is committed as soon as
their leader has counted them, and a record on fewer voters is not. Two logs agree up to the offset
at which their epochs diverge (Raft's log matching). For a single directory, all records on disk
count.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.pipeline.source.coverage import Span, covered_from
from quorate.pipeline.source.directories import log_start
from quorate.pipeline.source.record_epochs import recorded_epochs
from quorate.records.ids import Epoch
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quorate.pipeline.source.directories import Directory, SnapshotFile
    from quorate.pipeline.source.log_seek import EndSeeker
    from quorate.pipeline.source.splits import Split
    from quorate.raft.messages import EpochStart


@value_type
class SharedLog:
    """One log up to `end`, and the offsets that each directory has, by its number.

    For several directories, `epochs` has the epochs and start offsets of each, if known; for a
    single one, `checkpoint` has those of its checkpoint file.
    """

    directories: tuple[Directory, ...]
    spans: tuple[Span, ...]
    end: int
    epochs: tuple[tuple[tuple[int, int], ...], ...]
    checkpoint: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> str:
        """The paths of its directories, for messages."""
        return ", ".join(directory.path for directory in self.directories)

    def start(self) -> tuple[SnapshotFile | None, int]:
        """The snapshot that replaces records deleted everywhere, and the offset after it."""
        begin = covered_from(self.spans, self.end)
        starts = [start for start in map(log_start, self.directories) if start[1] == begin]
        # A directory may start there because it has lost the snapshot.
        return next((start for start in starts if start[0] is not None), (None, begin))

    def mendable(self, voter: int, splits: Iterable[Split]) -> list[Split]:
        """Add the other directories that may have the same records to parts of a log.

        Epochs identify the same records. A single directory is checked against its checkpoint.
        """
        epochs = self.epochs[voter]
        others = tuple(
            directory.path
            for number, directory in enumerate(self.directories)
            if number != voter and epochs
        )
        return [
            replace(each, elsewhere=others, epochs=epochs, checkpoint=self.checkpoint)
            for each in splits
        ]

    def known_epoch(self, voter: int, offset: int) -> Epoch | None:
        """The epoch of a record in this directory, if its epochs are known."""
        starts = [start for _, start in self.epochs[voter]]
        index = bisect_right(starts, offset) - 1
        return Epoch(self.epochs[voter][index][0]) if index >= 0 else None


@value_type
class _VoterLog:
    """A log's end and epochs; `epoch_before` is the last epoch of a snapshot at its start.

    Its segments end at `segments_end`; a snapshot that ends above that has `epoch_ahead`.
    """

    end: int
    epochs: tuple[EpochStart, ...]
    begin: int
    epoch_before: int | None
    segments_end: int
    epoch_ahead: int | None

    def stops(self) -> dict[int, int]:
        """The end offset of each epoch; empty if the epochs of the log are unknown."""
        starts = [each.start_offset for each in self.epochs]
        last = self.end if self.epoch_ahead is None else self.segments_end
        ends = [*starts[1:], last][: len(starts)]
        stops = {int(each.epoch): end for each, end in zip(self.epochs, ends, strict=True)}
        if self.epoch_ahead is not None and stops:
            stops[self.epoch_ahead] = self.end
        if self.epoch_before is not None:
            stops.setdefault(self.epoch_before, self.begin)
        return stops


def shared_log(
    directories: Sequence[Directory], seeker: EndSeeker, *, is_committed_only: bool = True
) -> SharedLog:
    """The log of these directories, up to the committed end or the end of the longest log."""
    # The result does not depend on the order of the directories.
    directories = sorted(directories, key=lambda each: (each.node_id is None, each.node_id or 0))
    if len(directories) == 1:
        (only,) = directories
        end = seeker.log_end(only)
        checkpoint = _pairs(recorded_epochs(only, is_needed=False))
        return SharedLog((only,), (Span(0, log_start(only)[1], end),), end, ((),), checkpoint)
    logs = [_voter_log(directory, seeker) for directory in directories]
    if is_committed_only:
        majority = len(logs) // 2 + 1
        ends = [
            sorted((_agreed_end(log, other) for other in logs), reverse=True)[majority - 1]
            for log in logs
        ]
        end = max(ends)
        agreeing = [log for log, agreed in zip(logs, ends, strict=True) if agreed == end]
        followed = max(
            agreeing, key=lambda log: (bool(log.epochs), log.epoch_ahead is None, -log.begin)
        )
    else:
        # As voters compare logs.
        followed = max(logs, key=lambda log: (max(log.stops(), default=-1), log.end))
        end = followed.end
    spans = (
        Span(number, log.begin, min(end, _agreed_end(followed, log)))
        for number, log in enumerate(logs)
    )
    # A log with a snapshot ahead does not have the epochs in between.
    epochs = tuple(_pairs((log if log.epoch_ahead is None else followed).epochs) for log in logs)
    return SharedLog(tuple(directories), tuple(spans), end, epochs)


def _pairs(epochs: Iterable[EpochStart]) -> tuple[tuple[int, int], ...]:
    return tuple((int(each.epoch), int(each.start_offset)) for each in epochs)


def _voter_log(directory: Directory, seeker: EndSeeker) -> _VoterLog:
    snapshot, begin = log_start(directory)
    epoch_before = None if snapshot is None or begin == 0 else int(snapshot.snapshot_id.epoch)
    segments_end = end = seeker.segments_end(directory)
    epoch_ahead = None
    for newest in directory.snapshots[-1:]:
        if newest.snapshot_id.offset > end:
            end, epoch_ahead = newest.snapshot_id.offset, int(newest.snapshot_id.epoch)
    epochs = seeker.epochs_of(directory)
    return _VoterLog(end, epochs, begin, epoch_before, segments_end, epoch_ahead)


def _agreed_end(one: _VoterLog, other: _VoterLog) -> int:
    """The offset up to which both logs agree: the end of the last epoch that both have."""
    stops = one.stops(), other.stops()
    shared = stops[0].keys() & stops[1].keys()
    if not shared:
        return min(one.end, other.end) if not stops[0] or not stops[1] else 0
    last = max(shared)
    return min(stops[0][last], stops[1][last])
