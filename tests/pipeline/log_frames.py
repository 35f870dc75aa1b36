"""Frames for tests of jobs: rows as the source gives them, made here without it and without Spark.

`read_directory` reads a log directory with the decoder of `quorate.records`, batch by batch; `Log`
writes the rows of a history that a test makes up. Both end in tuples of the frame's columns.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from quorate.pipeline.session import SMALL_LOG_SETTINGS
from quorate.records.batch import iter_batches, read_records
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch
from quorate.records.json_format import CONTROLS, control_to_json, record_to_json
from quorate.records.metadata import UnknownRecord, decode_record
from quorate.storage import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# Log directories below the folder of stock Kafka's files.
STOCK = [
    "dynamic/node-1/__cluster_metadata-0",
    "dynamic/node-2/__cluster_metadata-0",
    "dynamic/node-4/__cluster_metadata-0",
    "upgraded/after/node-1/__cluster_metadata-0",
    "segments/node-1/__cluster_metadata-0",
]
_ARROW = pa.schema(
    [
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("is_control", pa.bool_()),
        ("record_type", pa.string()),
        ("record_version", pa.int16()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("payload", pa.string()),
        ("batch_base_offset", pa.int64()),
        ("segment", pa.string()),
        ("crc_valid", pa.bool_()),
        ("source_node", pa.int32()),
    ]
)
# Two parts, so that what moves between them is tried, too.
SMALL_FRAMES = SMALL_LOG_SETTINGS | {"spark.sql.shuffle.partitions": "2"}
ORIGIN = datetime(1970, 1, 1, tzinfo=UTC)
# A Thursday; every history of a test begins here.
START_MS = 1_795_000_000_000


class Row(NamedTuple):
    """One record, in the order of the frame's columns."""

    offset: int
    leader_epoch: int
    timestamp: datetime
    is_control: bool
    record_type: str | None
    record_version: int | None
    key: bytes | None
    value: bytes | None
    payload: str | None
    batch_base_offset: int
    segment: str
    crc_valid: bool = True
    source_node: int | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The payload as Python has it."""
        decoded: dict[str, Any] = json.loads(self.payload or "{}")
        return decoded

    @property
    def at_ms(self) -> int:
        """The timestamp."""
        return to_ms(self.timestamp)

    @property
    def from_snapshot(self) -> bool:
        """True if it was in a snapshot."""
        return self.segment.endswith(layout.CHECKPOINT_SUFFIX)


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return (moment - ORIGIN) // timedelta(milliseconds=1)


def moment(at_ms: int) -> datetime:
    """The moment so many milliseconds after 1970."""
    return ORIGIN + timedelta(milliseconds=at_ms)


def clock_seed() -> int:
    """A seed that no run had before; it is printed, so that the run can be repeated."""
    seed = time.time_ns() % 1_000_000_000
    print(f"seed {seed}")  # noqa: T201
    return seed


def frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """The rows as a job gets them, though not in order."""
    shuffled = sorted(rows, key=lambda row: (row.offset * 2654435761) % 1009)
    cells = list(zip(*shuffled, strict=True)) or [()] * len(_ARROW)
    arrays = [pa.array(cell, type_) for cell, type_ in zip(cells, _ARROW.types, strict=True)]
    return spark.createDataFrame(pa.table(arrays, _ARROW))


def has_schema(table: DataFrame, schema: StructType) -> bool:
    """True if names and types are these; Spark infers by itself what may be null."""
    told = StructType([StructField(each.name, each.dataType) for each in table.schema])
    return bool(told.simpleString() == schema.simpleString())


def rows_as_dicts(table: DataFrame) -> list[dict[str, Any]]:
    """A table's rows; timestamps as milliseconds, so that nothing depends on the time zone."""
    return [plain(row.asDict(recursive=True)) for row in table.collect()]


def plain(cell: Any) -> Any:  # noqa: ANN401 - whatever Spark gives
    """A cell with its timestamps in milliseconds."""
    match cell:
        case datetime():
            return to_ms(cell.astimezone(UTC))
        case dict():
            return {name: plain(value) for name, value in cell.items()}
        case list():
            return [plain(value) for value in cell]
    return cell


# --- stock logs -----------------------------------------------------------------------------------


def read_directory(directory: Path, source_node: int | None = None) -> list[Row]:
    """A log directory from its start: where the log does not begin at 0, the snapshot first."""
    segments = sorted(
        path for path in directory.iterdir() if layout.parse_segment(path.name) is not None
    )
    rows = [row for path in segments for row in read_file(path, source_node)]
    if rows and rows[0].offset > 0:
        newest = max(
            snapshot_id
            for path in directory.iterdir()
            if (snapshot_id := layout.parse_checkpoint(path.name)) is not None
        )
        before = read_file(directory / layout.checkpoint_name(newest), source_node)
        rows = [*before, *(row for row in rows if row.offset >= newest.offset)]
    return rows


def read_file(path: Path, source_node: int | None = None) -> list[Row]:
    """Every record of a segment or snapshot."""
    data = path.read_bytes()
    snapshot_id = layout.parse_checkpoint(path.name)
    rows = []
    for position, header in iter_batches(data):
        for record in read_records(data, position, header):
            name, version, fields = _decoded(record.key, record.value, is_control=header.is_control)
            rows.append(
                Row(
                    offset=record.offset if snapshot_id is None else snapshot_id.offset - 1,
                    leader_epoch=header.epoch,
                    timestamp=moment(record.timestamp_ms),
                    is_control=header.is_control,
                    record_type=name,
                    record_version=version,
                    key=record.key,
                    value=record.value,
                    payload=json.dumps(fields),
                    batch_base_offset=header.base_offset,
                    segment=path.name,
                    source_node=source_node,
                )
            )
    return rows


def _decoded(
    key: bytes | None, value: bytes | None, *, is_control: bool
) -> tuple[str, int, object]:
    if is_control:
        assert key is not None
        assert value is not None
        fields = control_to_json(key, value)[1]
        shape = CONTROLS[int.from_bytes(key[2:4], "big")][1]
        return shape.__name__, int.from_bytes(value[:2], "big"), fields
    record, version = decode_record(value or b"")
    fields_of = record_to_json(record, version)["data"]
    if isinstance(record, UnknownRecord):
        return f"Unknown({record.api_key})", version, fields_of
    return type(record).__name__, version, fields_of


# --- histories ------------------------------------------------------------------------------------


@dataclass
class Log:
    """A history in the making: rows so far, the time and the epoch of the next one."""

    rows: list[Row] = field(default_factory=list)
    at_ms: int = START_MS
    epoch: int = 1
    offset: int = 0
    source_node: int | None = None

    def add(self, record_type: str, data: dict[str, Any], *, is_control: bool = False) -> Row:
        """The next record, in a batch of its own."""
        row = self._row(record_type, data, is_control=is_control, segment=layout.segment_name(0))
        self.rows.append(row)
        self.offset += 1
        return row

    def lead(self, leader_id: int, voters: Sequence[int], epoch: int | None = None) -> Row:
        """A LeaderChange, in the next epoch unless one is named."""
        self.epoch = self.epoch + 1 if epoch is None else epoch
        voters_of = [{"voterId": voter} for voter in voters]
        data = {
            "version": 0,
            "leaderId": leader_id,
            "voters": voters_of,
            "grantingVoters": voters_of[:2],
        }
        return self.add("LeaderChangeMessage", data, is_control=True)

    def snapshot(self, records: Sequence[tuple[str, dict[str, Any]]], *, taken_ms: int = 0) -> None:
        """The log begins here at a snapshot of these records, written `taken_ms` later."""
        assert not self.rows
        covered = {"version": 0, "lastContainedLogTimestamp": self.at_ms}
        name = layout.checkpoint_name(
            OffsetAndEpoch(epoch=Epoch(self.epoch), offset=Offset(self.offset))
        )
        self.at_ms += taken_ms
        self.offset -= 1
        for record_type, data in (
            ("SnapshotHeaderRecord", covered),
            *records,
            ("SnapshotFooterRecord", {"version": 0}),
        ):
            is_control = record_type.startswith("Snapshot") or record_type == "VotersRecord"
            self.rows.append(self._row(record_type, data, is_control=is_control, segment=name))
        self.offset += 1
        self.at_ms -= taken_ms

    def _row(
        self, record_type: str, data: dict[str, Any], *, is_control: bool, segment: str
    ) -> Row:
        return Row(
            offset=self.offset,
            leader_epoch=self.epoch,
            timestamp=moment(self.at_ms),
            is_control=is_control,
            record_type=record_type,
            record_version=0,
            key=b"\0\0\0\2" if is_control else None,
            value=b"\1" + record_type.encode(),
            payload=json.dumps(data),
            batch_base_offset=self.offset,
            segment=segment,
            source_node=self.source_node,
        )
