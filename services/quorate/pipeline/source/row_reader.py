"""Decodes records one by one: control records and what columns cannot handle.

A record that cannot be decoded although its CRC is valid becomes a damage row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quorate.pipeline.source.damage import Damage, DamageError
from quorate.pipeline.source.frame_schema import (
    TIME_MAX_MS,
    TIME_MIN_MS,
    TYPED,
    column_name,
    plain_value,
)
from quorate.pipeline.source.json_columns import compact
from quorate.records.batch import CorruptBatchError, read_runs
from quorate.records.codec.schema import schema_of
from quorate.records.json_format import CONTROLS, control_to_json, record_to_json
from quorate.records.metadata import RECORD_TYPES, UnknownRecord, decode_record, record_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split
    from quorate.records.batch import BatchHeader, Record
    from quorate.storage.log.batch_scanner import FileBatch


def type_name(api_key: int) -> str:
    """The name of a metadata record's type in the frame."""
    known = RECORD_TYPES.get(api_key)
    return f"Unknown({api_key})" if known is None else known.__name__


def payload_of(value: bytes) -> str:
    """A metadata record's fields as JSON. Raises SchemaError if it cannot be decoded."""
    decoded, version = decode_record(value)
    return compact(record_to_json(decoded, version)["data"])


def damage_row(damage: Damage, source_node: int | None) -> dict[str, Any]:
    """Convert damage to a row."""
    return {
        "offset": damage.offset,
        "payload": damage.payload,
        "segment": damage.file.rpartition("/")[2],
        "crc_valid": damage.is_intact,
        "source_node": source_node,
    }


class RowReader:
    """Converts batches to rows, dicts by column."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._payload_types = options.payload_types
        self._has_control_payload = options.has_control_payload

    def rows(self, split: Split, batch: FileBatch) -> Iterator[dict[str, Any]]:
        """Yield the rows of a batch. Raises DamageError if the options require that."""
        header = batch.header
        try:
            for run in read_runs(batch.buffer, batch.at, header):
                for record in run:
                    if split.overlaps(record.offset, record.offset):
                        yield self._row(record, header, split, batch.position)
        except CorruptBatchError as error:
            broken = Damage(
                error.reason,
                split.path,
                batch.position,
                header.size_bytes,
                header.base_offset,
                is_intact=True,
            )
            self._fail_for(broken)
            yield damage_row(broken, split.source_node)

    def _row(
        self, record: Record, header: BatchHeader, split: Split, position: int
    ) -> dict[str, Any]:
        offset = record.offset if split.snapshot_offset is None else split.snapshot_offset
        row: dict[str, Any] = {
            "offset": offset,
            "leader_epoch": header.epoch,
            "timestamp": min(max(record.timestamp_ms, TIME_MIN_MS), TIME_MAX_MS) * 1000,
            "is_control": header.is_control,
            "key": record.key,
            "value": record.value,
            "batch_base_offset": header.base_offset,
            "segment": split.path.rpartition("/")[2] or None,
            "crc_valid": True,
            "source_node": split.source_node,
        }
        try:
            return row | self._said(record, header)
        except ValueError as error:
            broken = Damage(
                str(error), split.path, position, header.size_bytes, offset, is_intact=True
            )
            self._fail_for(broken)
            return row | {"payload": broken.payload}

    def _said(self, record: Record, header: BatchHeader) -> dict[str, Any]:
        """The columns from the contents of the value."""
        value = record.value or b""
        if header.is_control:
            key = record.key or b""
            _, shape = CONTROLS.get(int.from_bytes(key[2:4], "big"), ("", None))
            fields = control_to_json(key, value)[1]
            return {
                "record_type": None if shape is None else shape.__name__,
                "record_version": int.from_bytes(value[:2], "big"),
                "payload": compact(fields) if self._has_control_payload else None,
            }
        api_key, version = record_frame(value)
        name = type_name(api_key)
        said: dict[str, Any] = {"record_type": name, "record_version": version}
        decoded, _ = decode_record(value)
        if isinstance(decoded, UnknownRecord) and api_key in RECORD_TYPES:
            # A row with the type alone would look like a record with all fields unset.
            versions = schema_of(RECORD_TYPES[api_key]).versions
            raise ValueError(
                f"a {name} of version {version}, and this release knows versions {versions.first} "
                f"to {versions.last}: it is of a newer one"
            )
        if self._payload_types is None or name in self._payload_types:
            said["payload"] = compact(record_to_json(decoded, version)["data"])
        if name in self._options.record_types and not isinstance(decoded, UnknownRecord):
            said[column_name(name)] = plain_value(decoded, schema_of(TYPED[name]).body)
        return said

    def _fail_for(self, damage: Damage) -> None:
        if self._options.fails_on_damage:
            raise DamageError(str(damage))
