"""Up to where the logs of several voters are committed, as far as their disks tell.

No disk says what is committed, but a record that a majority of the voters hold is, as soon as
their leader has counted them, and one that no majority holds is not. Two logs agree up to the
offset at which their epochs part (Raft's log matching). Of one directory alone all that is on the
disk counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.pipeline.source.coverage import Span, covered_from
from quorate.pipeline.source.damage import Damage, words_of
from quorate.pipeline.source.directories import log_start
from quorate.records.value import value
from quorate.storage import layout
from quorate.storage.epoch_checkpoint import read_epochs
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quorate.pipeline.source.directories import Directory, SnapshotFile
    from quorate.pipeline.source.seeking import EndSeeker
    from quorate.pipeline.source.splits import Split
    from quorate.raft.messages import EpochStart


@value
class SharedLog:
    """One log up to `end`, and the offsets of it that each directory holds, by its number.

    `epochs` has each epoch and where it begins, if there are several directories and it is known.
    """

    directories: tuple[Directory, ...]
    spans: tuple[Span, ...]
    end: int
    epochs: tuple[tuple[int, int], ...] = ()

    @property
    def place(self) -> str:
        """Its directories, as messages name them."""
        return ", ".join(directory.path for directory in self.directories)

    def start(self) -> tuple[SnapshotFile | None, int]:
        """The snapshot that stands for what was deleted everywhere, and the offset behind it."""
        begin = covered_from(self.spans, self.end)
        starts = map(log_start, self.directories)
        return next((start for start in starts if start[1] == begin), (None, begin))

    def mendable(self, voter: int, splits: Iterable[Split]) -> list[Split]:
        """Parts of a directory's log that know who else may hold the same records.

        Those are told by their epochs.
        """
        others = tuple(
            directory.path
            for number, directory in enumerate(self.directories)
            if number != voter and self.epochs
        )
        return [replace(each, elsewhere=others, epochs=self.epochs) for each in splits]


def shared_log(
    directories: Sequence[Directory], seeker: EndSeeker, *, is_committed_only: bool = True
) -> SharedLog:
    """The log of these directories: up to where a majority agree, or the furthest one's."""
    # In whichever order they are named.
    directories = sorted(directories, key=lambda each: (each.node_id is None, each.node_id or 0))
    if len(directories) == 1:
        (only,) = directories
        end = seeker.log_end(only)
        return SharedLog((only,), (Span(0, log_start(only)[1], end),), end)
    logs = [(seeker.log_end(directory), _epochs(directory)) for directory in directories]
    if is_committed_only:
        majority = len(logs) // 2 + 1
        ends = [
            sorted((_agreed_end(log, other) for other in logs), reverse=True)[majority - 1]
            for log in logs
        ]
        end = max(ends)
        followed = logs[ends.index(end)]
    else:
        # As voters judge each other.
        followed = max(logs, key=lambda log: (max((e.epoch for e in log[1]), default=-1), log[0]))
        end = followed[0]
    spans = (
        Span(number, log_start(directory)[1], min(end, _agreed_end(followed, log)))
        for number, (directory, log) in enumerate(zip(directories, logs, strict=True))
    )
    epochs = tuple((start.epoch, start.start_offset) for start in followed[1])
    return SharedLog(tuple(directories), tuple(spans), end, epochs)


def _agreed_end(
    one: tuple[int, Sequence[EpochStart]], other: tuple[int, Sequence[EpochStart]]
) -> int:
    """Up to where both hold the same: the end of the last epoch that both have."""
    ends = []
    for end, epochs in (one, other):
        starts = [start.start_offset for start in epochs]
        # Of a log whose epochs are not known there are no ends either.
        stops = [*starts[1:], end][: len(starts)]
        ends.append({start.epoch: stop for start, stop in zip(epochs, stops, strict=True)})
    shared = ends[0].keys() & ends[1].keys()
    if not shared:
        return min(one[0], other[0]) if not ends[0] or not ends[1] else 0
    last = max(shared)
    return min(ends[0][last], ends[1][last])


def _epochs(directory: Directory) -> Sequence[EpochStart]:
    path = f"{directory.path}/{layout.EPOCH_CHECKPOINT}"
    try:
        return read_epochs(OsFileSystem(), path) or ()
    except (OSError, StorageError) as error:
        reason = f"the log's epochs cannot be read, its offsets have to do: {words_of(error)}"
        directory.damages.append(Damage(reason, path, 0, 0, is_unread=True))
        return ()
