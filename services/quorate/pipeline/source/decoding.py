"""Batches of the log as Arrow batches of the frame.

Rows are gathered until there are enough of them, or of their bytes, so that what a worker holds
does not grow with the log or with its batches.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.pipeline.source.damage import Damage, DamageError
from quorate.pipeline.source.frame import TYPED, arrow_schema, column_name, plain_value
from quorate.records.batch import CorruptBatchError, read_runs
from quorate.records.json_form import CONTROLS, control_to_json, record_to_json
from quorate.records.metadata import RECORD_TYPES, UnknownRecord, decode_record, record_frame
from quorate.records.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split
    from quorate.records.batch import BatchHeader, Record
    from quorate.storage.scan import FileBatch

ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 4 * 1024 * 1024


class FrameBuilder:
    """Turns what a reader found into Arrow batches of the schema that the options ask for."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._schema = arrow_schema(options.columns, options.record_types)
        self._wanted = frozenset(options.columns)
        self._has_payload = options.has_payload and "payload" in self._wanted
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0

    def read(self, split: Split, found: Iterable[FileBatch | Damage]) -> Iterator[pa.RecordBatch]:
        """The rows of a split, the last ones after `flush`.

        Raises DamageError where the options want that.
        """
        for each in found:
            if isinstance(each, Damage):
                yield from self.add_damage(each, split.source_node)
                continue
            if not split.wants(each.header.base_offset, each.header.last_offset):
                continue
            if each.header.is_control and not self._options.has_controls:
                continue
            yield from self._add_batch(split, each)

    def add_damage(self, damage: Damage, source_node: int | None) -> Iterator[pa.RecordBatch]:
        """A row about damage. Raises DamageError where the options want that."""
        if self._options.fails_on_damage:
            raise DamageError(str(damage))
        self._rows.append(
            {
                "offset": damage.offset,
                "payload": damage.payload,
                "segment": damage.file.rpartition("/")[2],
                "crc_valid": damage.is_intact,
                "source_node": source_node,
            }
        )
        if len(self._rows) >= ROWS_MAX:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """What has been gathered."""
        if self._rows:
            columns = [
                pa.array([row.get(field.name) for row in self._rows], field.type)
                for field in self._schema
            ]
            self._rows, self._bytes = [], 0
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _add_batch(self, split: Split, batch: FileBatch) -> Iterator[pa.RecordBatch]:
        header = batch.header
        segment = split.path.rpartition("/")[2]
        try:
            for run in read_runs(batch.buffer, batch.at, header):
                for record in run:
                    if not split.wants(record.offset, record.offset):
                        continue
                    row = self._row(record, header, split, batch.position)
                    if self._options.is_typed_only and (
                        row["record_type"] not in self._options.record_types
                    ):
                        continue
                    row["segment"] = segment
                    row["source_node"] = split.source_node
                    self._rows.append(row)
                    self._bytes += len(record.value or b"")
                if len(self._rows) >= ROWS_MAX or self._bytes >= BYTES_MAX:
                    yield from self.flush()
        except CorruptBatchError as error:
            broken = Damage(
                error.reason, split.path, batch.position, header.size_bytes, is_intact=True
            )
            yield from self.add_damage(broken, split.source_node)

    def _row(
        self, record: Record, header: BatchHeader, split: Split, position: int
    ) -> dict[str, Any]:
        offset = record.offset if split.snapshot_offset is None else split.snapshot_offset
        row: dict[str, Any] = {
            "offset": offset,
            "leader_epoch": header.epoch,
            "timestamp": record.timestamp_ms * 1000,
            "is_control": header.is_control,
            "key": record.key,
            "value": record.value,
            "batch_base_offset": header.base_offset,
            "crc_valid": True,
        }
        try:
            self._say(row, record, header)
        except ValueError as error:
            broken = Damage(
                str(error), split.path, position, header.size_bytes, offset, is_intact=True
            )
            if self._options.fails_on_damage:
                raise DamageError(str(broken)) from error
            row |= {"record_type": None, "record_version": None, "payload": broken.payload}
        return row

    def _say(self, row: dict[str, Any], record: Record, header: BatchHeader) -> None:
        value = record.value or b""
        if header.is_control:
            _, shape = CONTROLS.get(int.from_bytes((record.key or b"")[2:4], "big"), ("", None))
            row["record_type"] = "Unknown" if shape is None else shape.__name__
            row["record_version"] = int.from_bytes(value[:2], "big")
            if self._has_payload:
                row["payload"] = _compact(control_to_json(record.key or b"", value)[1])
            return
        api_key, version = record_frame(value)
        known = RECORD_TYPES.get(api_key)
        name = f"Unknown({api_key})" if known is None else known.__name__
        row["record_type"], row["record_version"] = name, version
        is_typed = name in self._options.record_types
        if not self._has_payload and not is_typed:
            return
        decoded, version = decode_record(value)
        if self._has_payload:
            row["payload"] = _compact(record_to_json(decoded, version)["data"])
        if is_typed and not isinstance(decoded, UnknownRecord):
            row[column_name(name)] = plain_value(decoded, schema_of(TYPED[name]).body)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
