"""Streaming reader: offsets, admission, data-loss handling (`spark.readStream`).

Its offsets are in the checkpoint, so a batch that is repeated after a restart has the same records.
Each offset is checked against the log before records after it are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from quorate.pipeline.source.batch_reader import LivePartition, SplitPartition, read_partition
from quorate.pipeline.source.followed_log import DirectoryLog, QuorumLog
from quorate.pipeline.source.options import OptionError, SnapshotAt
from quorate.pipeline.source.splits import pack_splits
from quorate.pipeline.source.stream_offset import StreamOffset, read_offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit

    from quorate.pipeline.source.followed_log import FollowedLog
    from quorate.pipeline.source.options import Options

    Json: TypeAlias = dict[str, Any]


class DataLossError(RuntimeError):
    """The log lost records that the stream has not read, or differs from what it has read.

    `failOnDataLoss` determines if that ends the stream.
    """


class OtherClusterError(RuntimeError):
    """The checkpoint of a stream is for another cluster's log."""


def check_stream(options: Options) -> None:
    """Raise OptionError for batch options that a stream does not support."""
    if options.end != "latest":
        raise OptionError("endingOffsets: a stream has no end; it may be latest, or left out")
    if isinstance(options.start, SnapshotAt):
        raise OptionError(
            "startingOffsets: a stream goes on to the log's end, so it may begin with snapshot,"
            " the newest one, not with an older one"
        )


class KraftStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads each committed record once, over restarts of the query and changes of the leader."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._target: int | None = None
        self._log: FollowedLog | None = None

    # --- planning, in a process next to the driver ------------------------------------------------

    def initialOffset(self) -> Json:
        """The start position of a query without a checkpoint."""
        snapshot, offset = self.log.beginning()
        return self._place(offset, snapshot=snapshot)

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit set by `maxOffsetsPerTrigger`."""
        limit = self.options.offsets_per_trigger_max
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """The end position of the next batch.

        Raises CheckpointError, OtherClusterError and DataLossError.
        """
        place = read_offset(start)
        first, end = self.log.offsets()
        self._check(place)
        offset = place.offset
        through: str | None = None
        if offset < first:
            through, offset = self._past_loss(place, first)
        elif end < offset and self.options.fails_on_data_loss:
            raise DataLossError(
                f"the log ends at {end}, and the stream has read up to {offset}: this is another "
                "log, or one that lost records; give the query a new checkpoint, or set "
                "failOnDataLoss to false to wait until the log is that long again"
            )
        if self._target is not None:
            end = min(end, self._target)
        if isinstance(limit, ReadMaxRows):
            end = min(end, offset + int(limit.max_rows))
        if through is not None:
            return self._place(max(offset, end), through=through)
        if end <= offset:
            return start if place.snapshot is None else self._place(offset)
        return self._place(end)

    def _place(
        self, offset: int, *, snapshot: str | None = None, through: str | None = None
    ) -> Json:
        log = self.log
        epoch, cluster_id = log.epoch_before(offset), log.cluster_id()
        place = StreamOffset(offset, epoch, cluster_id, log.log_start(), snapshot, through)
        return place.to_json()

    def _check(self, place: StreamOffset) -> None:
        """Raise if the log below a position is not the one that the stream has read."""
        was, is_now = place.cluster, self.log.cluster_id()
        if was is not None and is_now is not None and was != is_now:
            raise OtherClusterError(
                f"the stream has read the log of cluster {was}, and this is that of {is_now}: give "
                "the query a new checkpoint and another output"
            )
        if place.epoch is None or not self.options.fails_on_data_loss:
            return
        epoch = self.log.epoch_before(place.offset)
        if epoch is not None and epoch != place.epoch:
            raise DataLossError(
                f"the record below offset {place.offset} was of epoch {place.epoch} for the stream,"
                f" and is of epoch {epoch} by now: the end of this log was truncated and written "
                "again, so the stream has read records that are not in it; give the query a new "
                "checkpoint and another output, or set failOnDataLoss to false to go on from that "
                "offset"
            )

    def _past_loss(self, place: StreamOffset, first: int) -> tuple[str | None, int]:
        if self.options.fails_on_data_loss:
            began = "" if place.log_start is None else f", and began at {place.log_start} before"
            raise DataLossError(
                f"offsets {place.offset} to {first - 1} are gone: the log begins at {first} by now"
                f"{began}; set failOnDataLoss to false to go on from the snapshot that stands for "
                "them, or give the query a new checkpoint"
            )
        return self.log.snapshot_for_deleted()

    def reportLatestOffset(self) -> Json | None:
        """The log's end, for the progress of the query."""
        return {"offset": self.log.log_end()}

    def prepareForTriggerAvailableNow(self) -> None:
        """Make the current end of the log the end of this run."""
        self._target = self.log.offsets()[1]

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """The tasks of one batch. Raises what `latestOffset` does."""
        begin, behind = read_offset(start), read_offset(end)
        # When a batch is repeated, the log may be another one than when the batch was planned.
        self._check(behind)
        low = begin.offset
        snapshot = behind.through or (begin.snapshot if start != end else None)
        if behind.through is not None:
            low = int(behind.through.partition("-")[0])
        splits, ranges = self.log.partitions(snapshot, low, behind.offset)
        packs = pack_splits(splits, self.options.split_bytes)
        return [*map(SplitPartition, packs), *map(LivePartition, ranges)]

    def stop(self) -> None:
        """Close what planning opened."""
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def log(self) -> FollowedLog:
        """The log, opened at its first use, because readers are also pickled for workers.

        Invalid options are reported here: PySpark replaces an error of the constructor by its own.
        """
        if self._log is None:
            check_stream(self.options)
            is_live = self.options.bootstrap_servers is not None
            self._log = QuorumLog(self.options) if is_live else DirectoryLog(self.options)
        return self._log

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "_target": None, "_log": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # --- in the workers ---------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        fails_on_unread = self.options.fails_on_data_loss
        return read_partition(self.options, partition, fails_on_unread=fails_on_unread)
