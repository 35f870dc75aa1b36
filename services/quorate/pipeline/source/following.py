"""A log that a stream follows: on disks, or in a live quorum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from quorate.pipeline.source.committed import CommittedLog, committed_log
from quorate.pipeline.source.damage import UnreadError, check_read
from quorate.pipeline.source.directories import find_directories
from quorate.pipeline.source.epochs import RecordEpochs
from quorate.pipeline.source.live import LiveLog, snapshot_of
from quorate.pipeline.source.live_plan import (
    LiveRange,
    beginning,
    log_ranges,
    of_cluster,
    snapshot_range,
)
from quorate.pipeline.source.options import AtOffset, AtTime, OptionError
from quorate.pipeline.source.planning import (
    log_splits,
    log_start,
    newest_snapshot,
    snapshot_splits,
)
from quorate.pipeline.source.seeking import log_end, offset_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.pipeline.source.directories import Directory, SnapshotFile
    from quorate.pipeline.source.live import LogEnds
    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split
    from quorate.records.ids import ClusterId, Epoch


class FollowedLog(Protocol):
    """What a stream asks of a log; snapshots are named as `516-1`, end offset and epoch."""

    def cluster_id(self) -> ClusterId | None:
        """Whose log it is, where that is known, as it was when the log was last looked at."""
        ...

    def log_start(self) -> int:
        """The first offset that is there, as it was when the log was last looked at."""
        ...

    def epoch_before(self, offset: int) -> Epoch | None:
        """The epoch of the last record below `offset`, where that is known."""
        ...

    def beginning(self) -> tuple[str | None, int]:
        """The snapshot that comes first, and the first offset behind it."""
        ...

    def ends(self) -> tuple[int, int]:
        """The first offset that is there, and the one behind the last that may be given."""
        ...

    def snapshot_for_lost(self) -> tuple[str | None, int]:
        """The snapshot that stands for what was deleted, and the first offset behind it."""
        ...

    def parts(
        self, snapshot: str | None, low: int, high: int
    ) -> tuple[Sequence[Split], Sequence[LiveRange]]:
        """The tasks for a snapshot and for the offsets from `low` up to `high`."""
        ...

    def close(self) -> None: ...


class DirectoryLog:
    """Directories, looked at anew each time. Of several one is read, up to where most agree."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._seen: Directory | None = None
        self._epochs = RecordEpochs()

    def cluster_id(self) -> ClusterId | None:
        return self._last_seen().cluster_id

    def log_start(self) -> int:
        return log_start(self._last_seen())[1]

    def epoch_before(self, offset: int) -> Epoch | None:
        return self._epochs.before(self._last_seen(), offset)

    def beginning(self) -> tuple[str | None, int]:
        log = self._look()
        directory, end = log.directory, log.end
        match self._options.start:
            case AtOffset(offset=offset):
                return None, offset
            case AtTime(timestamp_ms=timestamp_ms):
                offset = offset_at(directory, timestamp_ms)
                self._check_read(directory)
                # As a live quorum has it: there was no stream yet that could have lost the rest.
                return None, max(offset, log_start(directory)[1])
            case "latest":
                return None, end
            case "snapshot":
                return _named(newest_snapshot(directory, end))
            case _:
                return _named(log_start(directory))

    def ends(self) -> tuple[int, int]:
        log = self._look()
        return log_start(log.directory)[1], log.end

    def snapshot_for_lost(self) -> tuple[str | None, int]:
        return _named(log_start(self._look().directory))

    def parts(
        self, snapshot: str | None, low: int, high: int
    ) -> tuple[Sequence[Split], Sequence[LiveRange]]:
        log = self._look()
        directory = log.directory
        splits: list[Split] = []
        if snapshot is not None:
            wanted = snapshot_of(snapshot)
            files = [one for one in directory.snapshots if one.snapshot_id == wanted]
            if not files:
                raise OptionError(
                    f"path: snapshot {snapshot} is gone from {directory.path}, and the stream was "
                    "to begin with it; give the query a new checkpoint"
                )
            splits += snapshot_splits(directory, files[0], self._options.split_bytes)
        first = directory.segments[0].base_offset if directory.segments else high
        if low < first:
            stand_in, low = self._past_deleted(directory, low, first)
            if stand_in is not None and low <= high:
                splits += snapshot_splits(directory, stand_in, self._options.split_bytes)
        found = log_splits(directory, low, high, self._options.split_bytes)
        others = log.holding(high)
        if others:
            found = [replace(each, elsewhere=others, epochs=log.epochs) for each in found]
        found[-1:] = [replace(split, reach=high) for split in found[-1:]]
        return [*splits, *found], ()

    def _past_deleted(
        self, directory: Directory, low: int, first: int
    ) -> tuple[SnapshotFile | None, int]:
        """The snapshot to go on with where records went between two looks, and its end."""
        if self._options.fails_on_data_loss:
            raise UnreadError(
                f"offsets {low} to {first - 1} are gone from {directory.path} since this batch was "
                "planned; bring them back, set failOnDataLoss to false to go on from the snapshot "
                "that stands for them, or give the query a new checkpoint"
            )
        return log_start(directory)

    def close(self) -> None:
        """Nothing is kept open."""

    def _last_seen(self) -> Directory:
        # A look reads the ends of all directories, which is too much for each of a batch's facts.
        return self._seen or self._look().directory

    def _look(self) -> CommittedLog:
        directories = find_directories(self._options.paths)
        if len(directories) == 1 or not self._options.is_committed_only:
            found = CommittedLog(directories[0], log_end(directories[0]))
        else:
            found = committed_log(directories)
        self._check_read(*directories)
        self._seen = found.directory
        return found

    def _check_read(self, *directories: Directory) -> None:
        """Raises UnreadError where more may be there than could be read, if that is to end it."""
        if self._options.fails_on_data_loss:
            for directory in directories:
                check_read(directory.damages)


class QuorumLog:
    """A live quorum, whose leader is asked."""

    def __init__(self, options: Options) -> None:
        if not options.is_committed_only:
            raise OptionError(
                "isolation: a live quorum gives what is committed; read_uncommitted needs a path"
            )
        self._options = options
        self._live = LiveLog(options)
        self._seen: LogEnds | None = None

    def cluster_id(self) -> ClusterId:
        return self._live.cluster_id()

    def log_start(self) -> int:
        return (self._seen or self._look()).start

    def epoch_before(self, offset: int) -> Epoch | None:
        return self._live.epoch_before(offset)

    def beginning(self) -> tuple[str | None, int]:
        ends = self._look()
        match self._options.start:
            case AtOffset(offset=offset):
                return None, offset
            case AtTime(timestamp_ms=timestamp_ms):
                return None, self._live.offset_at(timestamp_ms, ends)
            case _:
                snapshot_id, offset = beginning(self._options, ends)
                if snapshot_id is None:
                    return None, offset
                return f"{snapshot_id.offset}-{snapshot_id.epoch}", offset

    def ends(self) -> tuple[int, int]:
        ends = self._look()
        return ends.start, ends.end

    def snapshot_for_lost(self) -> tuple[str | None, int]:
        snapshot_id = self._look().snapshot_id
        if snapshot_id is None:
            return None, 0
        return f"{snapshot_id.offset}-{snapshot_id.epoch}", snapshot_id.offset

    def parts(
        self, snapshot: str | None, low: int, high: int
    ) -> tuple[Sequence[Split], Sequence[LiveRange]]:
        ranges = [] if snapshot is None else [snapshot_range(snapshot_of(snapshot))]
        return (), of_cluster(self.cluster_id(), [*ranges, *log_ranges(low, high)])

    def close(self) -> None:
        self._live.close()

    def _look(self) -> LogEnds:
        self._seen = self._live.ends()
        return self._seen


def _named(found: tuple[SnapshotFile | None, int]) -> tuple[str | None, int]:
    snapshot, offset = found
    if snapshot is None:
        return None, offset
    return f"{snapshot.snapshot_id.offset}-{snapshot.snapshot_id.epoch}", offset
