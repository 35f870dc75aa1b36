"""Up to where the logs of several voters are committed, as far as their disks tell.

No disk says what is committed, but a record that a majority of the voters hold is, as soon as
their leader has counted them, and one that no majority holds is not. Two logs agree up to the
offset at which their epochs part (Raft's log matching). Of one directory alone all that is on the
disk counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.source.damage import Damage, words_of
from quorate.pipeline.source.seeking import log_end
from quorate.records.value import value
from quorate.storage import layout
from quorate.storage.epoch_checkpoint import read_epochs
from quorate.storage.errors import StorageError
from quorate.storage.files import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.pipeline.source.directories import Directory
    from quorate.raft.messages import EpochStart


def committed_end(directories: Sequence[Directory]) -> int:
    """The highest offset below which a majority of these directories hold the same records."""
    return committed_log(directories).end


@value
class CommittedLog:
    """A directory that holds all that is committed, and up to where that is.

    `others` are the paths of the other directories, with the offset up to which each of them holds
    the same records; those whose epochs are not known are left out.
    `epochs` has each epoch of the log and where it begins, as far as they are known.
    """

    directory: Directory
    end: int
    others: tuple[tuple[str, int], ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()

    def holding(self, end: int) -> tuple[str, ...]:
        """The other directories that hold the same records below `end`."""
        return tuple(path for path, agreed in self.others if agreed >= end)


def committed_log(directories: Sequence[Directory]) -> CommittedLog:
    """One of the directories that hold all that is committed."""
    logs = [(log_end(directory), _epochs(directory)) for directory in directories]
    majority = len(logs) // 2 + 1
    ends = [
        sorted((_agreed_end(log, other) for other in logs), reverse=True)[majority - 1]
        for log in logs
    ]
    chosen = ends.index(max(ends))
    others = tuple(
        (directory.path, _agreed_end(logs[chosen], log))
        for directory, log in zip(directories, logs, strict=True)
        if directory is not directories[chosen] and log[1] and logs[chosen][1]
    )
    epochs = tuple((start.epoch, start.start_offset) for start in logs[chosen][1])
    return CommittedLog(directories[chosen], max(ends), others, epochs)


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
