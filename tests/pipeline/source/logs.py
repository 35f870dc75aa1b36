"""Small log directories for the tests of the source, written by the encoders of production."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.pipeline.source.batch_plan import plan_batch
from quorate.pipeline.source.frame_builder import FrameBuilder
from quorate.pipeline.source.log_seek import log_end, time_sides
from quorate.pipeline.source.options import parse_options
from quorate.pipeline.source.record_repair import read_mended
from quorate.pipeline.source.time_search import TimePlace, place_of
from quorate.records.batch import encode_batch
from quorate.records.control import (
    ControlRecord,
    KRaftVersion,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    encode_control_batch,
)
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
    OffsetAndEpoch,
    TopicId,
)
from quorate.records.metadata import PartitionRecord, TopicRecord, encode_record
from quorate.storage.layout import LOG_DIR, checkpoint_name, segment_name
from quorate.storage.meta_properties import MetaProperties, encode_meta

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from quorate.pipeline.source.directories import Directory

START_MS = 1_767_571_200_000
STEP_MS = 1000
DAY_MS = 86_400_000


def topic(number: int) -> bytes:
    """The value of a TopicRecord."""
    record = TopicRecord(name=f"topic-{number}", topic_id=TopicId(number.to_bytes(16, "big")))
    return encode_record(record, 0)


def partition(number: int, replicas: tuple[int, ...] = (1, 2, 3)) -> bytes:
    """The value of a PartitionRecord of version 1."""
    record = PartitionRecord(
        partition_id=number,
        topic_id=TopicId(bytes(16)),
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=number,
        directories=tuple(DirectoryId(bytes([id_] * 16)) for id_ in replicas),
    )
    return encode_record(record, 1)


class LogWriter:
    """Writes batches into `path`, a metadata.log.dir, one segment at a time."""

    def __init__(
        self, path: Path, *, node_id: int = 1, base: int = 0, cluster_id: str = "c"
    ) -> None:
        self.root = path
        self.directory = path / LOG_DIR
        self.directory.mkdir(parents=True)
        directory_id = DirectoryId(bytes(15) + b"\x07")
        meta = MetaProperties(NodeId(node_id), ClusterId(cluster_id), directory_id)
        (path / "meta.properties").write_bytes(encode_meta(meta))
        self.offset = base
        self.epoch = 1
        self.segment = base
        # How far the leader's clock is ahead of true time.
        self.ahead_ms = 0
        self.positions: list[tuple[Path, int, int]] = []

    @property
    def file(self) -> Path:
        return self.directory / segment_name(self.segment)

    def roll(self) -> None:
        self.segment = self.offset

    def lead(self, epoch: int) -> None:
        """A LeaderChange that begins an epoch."""
        self.epoch = epoch
        change = LeaderChange(NodeId(1), (NodeId(1),), (NodeId(1),))
        batch = encode_control_batch(
            [change], timestamp_ms=self.now_ms, base_offset=self.offset, epoch=epoch
        )
        self._append(batch, 1)

    def write(self, values: list[bytes]) -> None:
        """One batch."""
        batch = encode_batch(
            values, timestamp_ms=self.now_ms, base_offset=self.offset, epoch=self.epoch
        )
        self._append(batch, len(values))

    @property
    def now_ms(self) -> int:
        return START_MS + self.offset * STEP_MS + self.ahead_ms

    def _append(self, batch: bytes, count: int) -> None:
        with self.file.open("ab") as file:
            self.positions.append((self.file, file.tell(), self.offset))
            file.write(batch)
        self.offset += count

    def snapshot(self, end: int, values: list[bytes], *, epoch: int = 1) -> Path:
        """A whole snapshot of everything below `end`."""
        covered_until_ms = START_MS + max(end - 1, 0) * STEP_MS
        header: list[ControlRecord] = [SnapshotHeader(covered_until_ms), KRaftVersion(1)]
        parts = [encode_control_batch(header, timestamp_ms=START_MS, epoch=epoch)]
        offset = len(header)
        if values:
            parts.append(
                encode_batch(values, timestamp_ms=START_MS, base_offset=offset, epoch=epoch)
            )
            offset += len(values)
        footer = [SnapshotFooter()]
        parts.append(
            encode_control_batch(footer, timestamp_ms=START_MS, base_offset=offset, epoch=epoch)
        )
        snapshot_id = OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(end))
        path = self.directory / checkpoint_name(snapshot_id)
        path.write_bytes(b"".join(parts))
        return path


def small_log(path: Path, *, node_id: int = 1) -> LogWriter:
    """Offsets 0 to 20 in two segments and two epochs: three topics, fifteen partitions."""
    log = LogWriter(path, node_id=node_id)
    log.lead(1)
    for number in range(3):
        log.write([topic(number), *(partition(part) for part in range(2))])
    log.roll()
    log.lead(2)
    log.write([partition(part) for part in range(10)])
    return log


def voters(path: Path) -> tuple[LogWriter, LogWriter]:
    """Offsets 0 to 20 of node 2, and those from 12 on, behind a snapshot, of node 1."""
    long = LogWriter(path / "long", node_id=2)
    long.lead(1)
    while long.offset < 12:
        long.write([partition(long.offset)])
    long.roll()
    while long.offset < 21:
        long.write([partition(long.offset)])
    return shortened(long, path / "short", node_id=1), long


def shortened(log: LogWriter, path: Path, *, node_id: int) -> LogWriter:
    """The last segment of a log, and a snapshot in front of it."""
    short = LogWriter(path, node_id=node_id, base=log.segment)
    short.file.write_bytes(log.file.read_bytes())
    short.snapshot(log.segment, [topic(1)])
    return short


def log_with_a_clock_ahead(path: Path, *, values: list[bytes], node_id: int = 1) -> LogWriter:
    """Three epochs of a segment each; the clock of the second leader is a day ahead."""
    log = LogWriter(path, node_id=node_id)
    for epoch, ahead_ms in ((1, 0), (2, DAY_MS), (3, 0)):
        log.roll()
        log.ahead_ms = ahead_ms
        log.lead(epoch)
        for _ in range(9):
            log.write(values)
    return log


def paths_of(*logs: LogWriter) -> str:
    """Their directories as the option `path` has them."""
    return ",".join(str(log.root) for log in logs)


def time_place(directory: Directory, timestamp_ms: int) -> TimePlace:
    """The place of a time in the log of one directory."""
    end = log_end(directory)
    return place_of([time_sides(directory, timestamp_ms, 0, end)], end)


def flip(file: Path, position: int, bit: int = 0) -> None:
    """Turn over one bit of the byte at `position`."""
    data = bytearray(file.read_bytes())
    data[position] ^= 1 << bit
    file.write_bytes(data)


def rows(path: Path | str, **options: str) -> list[dict[str, Any]]:
    """Rows that a reader of these options returns, in the order of offsets if there are any."""
    parsed = parse_options({"path": str(path), **options})
    plan = plan_batch(parsed)
    builder = FrameBuilder(parsed)
    found: list[dict[str, Any]] = []
    for split in plan.splits:
        for part, batches in read_mended(split):
            for batch in builder.read(part, batches):
                found += batch.to_pylist()
    for damage, source_node in plan.damages:
        for batch in builder.add_damage(damage, source_node):
            found += batch.to_pylist()
    for batch in builder.flush():
        found += batch.to_pylist()
    return sorted(found, key=lambda row: (row.get("offset") is None, row.get("offset")))


def damaged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows about damage."""
    return [row for row in found if row["record_type"] is None]


def offsets(found: list[dict[str, Any]]) -> list[int]:
    """The offsets of the records."""
    return [row["offset"] for row in found if row["record_type"] is not None]
