"""Log sources of a stream: directories or a live quorum."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from quorate.pipeline.source.committed_end import SharedLog, shared_log
from quorate.pipeline.source.coverage import covered_from
from quorate.pipeline.source.damage import UnreadError, check_read
from quorate.pipeline.source.directories import find_directories
from quorate.pipeline.source.live_log import LiveLog, snapshot_of, snapshot_words
from quorate.pipeline.source.live_plan import (
    QUORUMS_LOG,
    LiveRange,
    beginning,
    log_ranges,
    of_cluster,
    snapshot_range,
)
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
from quorate.pipeline.source.options import START, AtOffset, AtTime, OptionError, check_reached
from quorate.pipeline.source.record_epochs import RecordEpochs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.pipeline.source.coverage import Span
    from quorate.pipeline.source.damage import Damage
    from quorate.pipeline.source.directories import SnapshotFile
    from quorate.pipeline.source.live_log import LogEnds
    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split
    from quorate.records.ids import ClusterId, Epoch, OffsetAndEpoch

_log: Final = logging.getLogger(__name__)


class FollowedLog(Protocol):
    """Interface of a log for a stream; snapshots are named as `516-1`: end offset and epoch."""

    def cluster_id(self) -> ClusterId | None:
        """The cluster of the log, if known, as of the last refresh."""
        ...

    def log_start(self) -> int:
        """The first existing offset as of the last refresh."""
        ...

    def log_end(self) -> int:
        """The end of the offsets that may be read, as of the last refresh."""
        ...

    def epoch_before(self, offset: int) -> Epoch | None:
        """The epoch of the last record below `offset`, if known."""
        ...

    def beginning(self) -> tuple[str | None, int]:
        """The snapshot to read first, and the first offset after it."""
        ...

    def offsets(self) -> tuple[int, int]:
        """Refresh the log; returns the first existing offset and the end of the readable ones."""
        ...

    def snapshot_for_deleted(self) -> tuple[str | None, int]:
        """The snapshot that replaces deleted records, and the first offset after it."""
        ...

    def partitions(
        self, snapshot: str | None, low: int, high: int
    ) -> tuple[Sequence[Split], Sequence[LiveRange]]:
        """The tasks for a snapshot and for the offsets from `low` up to `high`."""
        ...

    def close(self) -> None: ...


class DirectoryLog:
    """Directories, listed again each time; each record is read from one of several.

    The chosen directory is kept until it lacks the next record and another one has it.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._seen: SharedLog | None = None
        self._chosen: str | None = None
        self._seeker = EndSeeker()
        self._epochs = RecordEpochs()

    def cluster_id(self) -> ClusterId | None:
        directories = self._last_seen().directories
        return next((each.cluster_id for each in directories if each.cluster_id), None)

    def log_start(self) -> int:
        return self._last_seen().start()[1]

    def log_end(self) -> int:
        return self._last_seen().end

    def epoch_before(self, offset: int) -> Epoch | None:
        log = self._last_seen()
        holding = [span for span in readable(log) if span.begin <= offset <= span.end]
        holding.sort(key=lambda span: span.voter != self._preferred(log).voter)
        epochs = (
            log.known_epoch(span.voter, offset - 1)
            or self._epochs.before(log.directories[span.voter], offset)
            for span in holding
        )
        return next((epoch for epoch in epochs if epoch is not None), None)

    def beginning(self) -> tuple[str | None, int]:
        log = self._look()
        match self._options.start:
            case AtOffset(offset=offset):
                check_reached(self._options, name_of(log), log.end)
                return None, offset
            case AtTime(timestamp_ms=timestamp_ms) as time:
                # As for a live quorum: no stream existed yet that could have lost earlier records.
                place = place_of_time(log, timestamp_ms, self._preferred(log))
                self._check_read(log)
                return None, place.chosen(START, time, name_of(log))
            case "latest":
                return None, log.end
            case "snapshot":
                found = newest_of_all(log, log.end)
            case _:
                found = log.start()
        lost = lost_beginning(log)
        if found[0] is None and lost is not None:
            self._tell_lost(lost)
        return _named_file(found)

    def _tell_lost(self, lost: Damage) -> None:
        if self._options.fails_on_data_loss:
            check_read([lost])
        _log.warning("path: %s", lost)

    def offsets(self) -> tuple[int, int]:
        log = self._look()
        return log.start()[1], log.end

    def snapshot_for_deleted(self) -> tuple[str | None, int]:
        return _named_file(self._look().start())

    def partitions(
        self, snapshot: str | None, low: int, high: int
    ) -> tuple[Sequence[Split], Sequence[LiveRange]]:
        log = self._look()
        splits: list[Split] = []
        if snapshot is not None:
            splits += self._snapshot(log, snapshot_of(snapshot))
        spans = readable(log)
        has_segments = any(directory.segments for directory in log.directories)
        first = covered_from(spans, log.end) if has_segments else high
        if low < first:
            stand_in, low = self._past_deleted(log, low, first)
            if stand_in is not None and low <= high:
                splits += self._snapshot(log, stand_in.snapshot_id)
        chosen = spans[self._preferred(log).voter]
        parts = merged_parts(log, low, high, chosen)
        if parts[0].voter != chosen.voter:
            self._choose(log, parts[0], f"it has the next record, {low}")
        splits += merged_splits(log, parts, self._options.split_bytes)
        return splits, ()

    def _snapshot(self, log: SharedLog, wanted: OffsetAndEpoch) -> list[Split]:
        size_bytes = self._options.split_bytes
        splits = snapshot_of_any(log, wanted, self._preferred(log), size_bytes)
        if splits is not None:
            return splits
        raise OptionError(
            f"path: snapshot {snapshot_words(wanted)} is gone from {log.place},"
            " and the stream was to begin with it; give the query a new checkpoint"
        )

    def _past_deleted(
        self, log: SharedLog, low: int, first: int
    ) -> tuple[SnapshotFile | None, int]:
        """The snapshot to continue with after a deletion between two refreshes, and its end."""
        if self._options.fails_on_data_loss:
            raise UnreadError(
                f"offsets {low} to {first - 1} are gone from {log.place} since this batch "
                "was planned; bring them back, set failOnDataLoss to false to go on from the "
                "snapshot that stands for them, or give the query a new checkpoint"
            )
        return log.start()

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    def _last_seen(self) -> SharedLog:
        # A refresh reads the ends of all directories, which is too much for each value of a batch.
        return self._seen or self._look()

    def _look(self) -> SharedLog:
        before = () if self._seen is None else self._seen.directories
        directories = find_directories(self._options.paths, before)
        is_committed_only = self._options.is_committed_only
        log = shared_log(directories, self._seeker, is_committed_only=is_committed_only)
        self._check_read(log)
        self._seen = log
        self._choose(log, self._preferred(log), "it holds the most")
        return log

    def _preferred(self, log: SharedLog) -> Span:
        """The span of the chosen directory, or else of the one with the most offsets."""
        return preferred(log, self._chosen)

    def _choose(self, log: SharedLog, span: Span, why: str) -> None:
        path = log.directories[span.voter].path
        if path != self._chosen and len(log.directories) > 1:
            held = log.spans[span.voter]
            _log.warning(
                "path: of %d directories %s is read: %s; it has the offsets from %d up to %d",
                *(len(log.directories), path, why, held.begin, held.end),
            )
        self._chosen = path

    def _check_read(self, log: SharedLog) -> None:
        """Raise UnreadError for unreadable files, if the stream must fail on data loss."""
        if self._options.fails_on_data_loss:
            check_read(damage for damage, _ in unreplaced(log))


class QuorumLog:
    """A live quorum, read from its leader."""

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

    def log_end(self) -> int:
        return (self._seen or self._look()).end

    def epoch_before(self, offset: int) -> Epoch | None:
        return self._live.epoch_before(offset)

    def beginning(self) -> tuple[str | None, int]:
        ends = self._look()
        match self._options.start:
            case AtOffset(offset=offset):
                check_reached(self._options, QUORUMS_LOG, ends.end)
                return None, offset
            case AtTime(timestamp_ms=timestamp_ms) as time:
                place = self._live.time_place(timestamp_ms, ends)
                return None, place.chosen(START, time, QUORUMS_LOG)
            case _:
                return _named(*beginning(self._options, ends))

    def offsets(self) -> tuple[int, int]:
        ends = self._look()
        return ends.start, ends.end

    def snapshot_for_deleted(self) -> tuple[str | None, int]:
        snapshot_id = self._look().snapshot_id
        return _named(snapshot_id, 0 if snapshot_id is None else snapshot_id.offset)

    def partitions(
        self, snapshot: str | None, low: int, high: int
    ) -> tuple[Sequence[Split], Sequence[LiveRange]]:
        ranges = [] if snapshot is None else [snapshot_range(snapshot_of(snapshot))]
        ranges += log_ranges(low, high, self._options.tasks_max)
        return (), of_cluster(self.cluster_id(), ranges)

    def close(self) -> None:
        self._live.close()

    def _look(self) -> LogEnds:
        self._seen = self._live.ends()
        return self._seen


def _named_file(found: tuple[SnapshotFile | None, int]) -> tuple[str | None, int]:
    snapshot, offset = found
    return _named(None if snapshot is None else snapshot.snapshot_id, offset)


def _named(snapshot_id: OffsetAndEpoch | None, offset: int) -> tuple[str | None, int]:
    return None if snapshot_id is None else snapshot_words(snapshot_id), offset
