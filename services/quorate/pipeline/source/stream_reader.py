"""Follows a log as it grows: `spark.readStream`.

An offset of the stream is a JSON object. `offset` is the next record of the log; `snapshot` names a
snapshot that has to be given before it, `through` one that stands for records which were deleted
before they were read, and `cluster` whose log it is, as far as that is known. All are in the
checkpoint, so a batch that is run again after a restart is the same batch.
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
from quorate.pipeline.source.following import DirectoryLog, QuorumLog
from quorate.pipeline.source.options import OptionError, SnapshotAt
from quorate.pipeline.source.splits import packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit

    from quorate.pipeline.source.following import FollowedLog
    from quorate.pipeline.source.options import Options

    StreamOffset: TypeAlias = dict[str, Any]


class DataLossError(RuntimeError):
    """Records that the stream has not read are gone from the log (`failOnDataLoss`)."""


class OtherClusterError(RuntimeError):
    """The checkpoint of a stream is that of another cluster's log."""


class KraftStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads each committed record once, over restarts of the query and changes of the leader."""

    def __init__(self, options: Options) -> None:
        if options.end != "latest":
            raise OptionError("endingOffsets: a stream has no end; it may be latest, or left out")
        if isinstance(options.start, SnapshotAt):
            raise OptionError(
                "startingOffsets: a stream goes on to the log's end, so it may begin with snapshot,"
                " the newest one, not with an older one"
            )
        self.options = options
        self._target: int | None = None
        self._log: FollowedLog | None = None

    # --- planning, in a process beside the driver -------------------------------------------------

    def initialOffset(self) -> StreamOffset:
        """Where a query without a checkpoint begins."""
        snapshot, offset = self.log.beginning()
        place: StreamOffset = {"offset": offset}
        return self._of_cluster(place if snapshot is None else place | {"snapshot": snapshot})

    def getDefaultReadLimit(self) -> ReadLimit:
        """What `maxOffsetsPerTrigger` says."""
        limit = self.options.offsets_per_trigger_max
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:
        """Up to where the next batch goes. Raises DataLossError and OtherClusterError."""
        first, end = self.log.ends()
        self._check_cluster(start)
        if self._target is not None:
            end = min(end, self._target)
        offset = int(start["offset"])
        through: str | None = None
        if offset < first:
            through, offset = self._past_loss(offset, first)
        elif end < offset and self._target is None and self.options.fails_on_data_loss:
            raise DataLossError(
                f"the log ends at {end}, and the stream has read up to {offset}: this is another "
                "log, or one that lost records; give the query a new checkpoint, or set "
                "failOnDataLoss to false to wait until the log is that long again"
            )
        if isinstance(limit, ReadMaxRows):
            end = min(end, offset + int(limit.max_rows))
        if through is not None:
            return self._of_cluster({"offset": max(offset, end), "through": through})
        if end <= offset:
            return self._of_cluster({"offset": offset}) if "snapshot" in start else start
        return self._of_cluster({"offset": end})

    def _of_cluster(self, place: StreamOffset) -> StreamOffset:
        cluster_id = self.log.cluster_id()
        return place if cluster_id is None else place | {"cluster": cluster_id}

    def _check_cluster(self, place: StreamOffset) -> None:
        was, is_now = place.get("cluster"), self.log.cluster_id()
        if was is not None and is_now is not None and was != is_now:
            raise OtherClusterError(
                f"the stream has read the log of cluster {was}, and this is that of {is_now}: give "
                "the query a new checkpoint and another output"
            )

    def _past_loss(self, offset: int, first: int) -> tuple[str | None, int]:
        if self.options.fails_on_data_loss:
            raise DataLossError(
                f"offsets {offset} to {first - 1} are gone: the log begins at {first} by now; set "
                "failOnDataLoss to false to go on from the snapshot that stands for them, or give "
                "the query a new checkpoint"
            )
        return self.log.snapshot_for_lost()

    def reportLatestOffset(self) -> StreamOffset | None:
        """The log's end, for the progress of the query."""
        return {"offset": self.log.ends()[1]}

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is the end of this run."""
        self._target = self.log.ends()[1]

    def partitions(self, start: StreamOffset, end: StreamOffset) -> Sequence[InputPartition]:
        """The tasks of one batch. Raises OtherClusterError."""
        self._check_cluster(end)
        low, high = int(start["offset"]), int(end["offset"])
        snapshot = end.get("through") or (start.get("snapshot") if start != end else None)
        if "through" in end:
            low = int(str(end["through"]).partition("-")[0])
        splits, ranges = self.log.parts(snapshot, low, high)
        packs = packed(splits, self.options.split_bytes)
        return [*map(SplitPartition, packs), *map(LivePartition, ranges)]

    def stop(self) -> None:
        """Close what planning opened."""
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def log(self) -> FollowedLog:
        """Opened at its first use, for a reader travels to the workers, too."""
        if self._log is None:
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
