"""Decodes data records of many batches at once into columns, without an object per record.

All rows of one buffer are decoded together and returned in the order of their types, so that a
struct column needs no rearranging. That is possible because rows of a frame are unordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from quorate.pipeline.source.arrow_schema import arrow_schema
from quorate.pipeline.source.frame_schema import (
    TIME_MAX_MS,
    TIME_MIN_MS,
    TYPED,
    column_name,
)
from quorate.pipeline.source.json_columns import json_strings
from quorate.pipeline.source.row_reader import payload_of, type_name
from quorate.pipeline.source.struct_columns import struct_array
from quorate.records.codec.schema import schema_of
from quorate.records.columnar.positions import record_positions, rows_at
from quorate.records.columnar.reader import decode_columns
from quorate.records.metadata import RECORD_TYPES
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from quorate.pipeline.source.options import Options
    from quorate.pipeline.source.splits import Split
    from quorate.records.columnar.batch_run import BatchRun
    from quorate.records.columnar.positions import RecordPositions

    Index = NDArray[np.intp]

# Frame version, api key and version take a byte each in every record that this release knows.
_FRAME_BYTES: Final = 3
_ONE_BYTE: Final = 0x80
# By api key and version: False for an unknown version of a known type.
_HAS_VERSION: Final = np.array(
    [
        [
            api_key not in RECORD_TYPES or version in schema_of(RECORD_TYPES[api_key]).versions
            for version in range(_ONE_BYTE)
        ]
        for api_key in range(_ONE_BYTE)
    ]
)
# For fewer records of one size, decoding one by one is faster than in columns.
_COLUMNS_FROM: Final = 8


@value_type
class Buffer:
    """Batches in one buffer, and the positions of their records."""

    split: Split
    run: BatchRun
    octets: NDArray[np.uint8]
    record_positions: RecordPositions


def buffer_of(split: Split, run: BatchRun) -> Buffer:
    """Locate the records of data batches that share a buffer. Raises CorruptBatchError."""
    return Buffer(split, run, np.frombuffer(run.buffer, np.uint8), record_positions(run))


def undecodable_batches(buffer: Buffer) -> NDArray[np.bool_]:
    """True for each batch with a record that does not start as records of a metadata log do.

    This includes a record of an unknown version, which must be reported separately.
    """
    places, octets = buffer.record_positions, buffer.octets
    is_fit = places.is_plain & (places.value_size >= _FRAME_BYTES)
    at = np.where(is_fit, places.value_at, 0)
    is_fit &= (octets[at] == 1) & (octets[at + 1] < _ONE_BYTE) & (octets[at + 2] < _ONE_BYTE)
    fit = at[is_fit]
    is_fit[is_fit] = _HAS_VERSION[octets[fit + 1], octets[fit + 2]]
    is_unfit = np.zeros(len(buffer.run), np.bool_)
    is_unfit[places.batch[~is_fit]] = True
    return is_unfit


class VectorReader:
    """Converts buffers to Arrow batches."""

    def __init__(self, options: Options, wanted_types: frozenset[str] | None) -> None:
        self._options = options
        self._schema = arrow_schema(options.columns, options.record_types)
        self._wanted_types = wanted_types

    def batches(self, buffer: Buffer) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a buffer. Raises SchemaError if a record cannot be decoded."""
        places = buffer.record_positions
        octets = buffer.octets
        api_keys = octets[places.value_at + 1]
        chosen = self._chosen(buffer)
        named = {name: _api_key(name) for name in self._options.record_types}
        is_named = np.zeros(256, np.bool_)
        is_named[list(named.values())] = True
        for name, api_key in named.items():
            index = chosen[api_keys[chosen] == api_key]
            if len(index):
                order, structs = _typed(buffer, index, name)
                yield self._assemble(buffer, order, column_name(name), structs)
        if not self._options.is_typed_only:
            rest = chosen[~is_named[api_keys[chosen]]]
            if len(rest):
                yield self._assemble(buffer, rest, "", None)

    def _chosen(self, buffer: Buffer) -> Index:
        """The wanted records."""
        split, places = buffer.split, buffer.record_positions
        chosen = np.arange(len(places.batch))
        if split.snapshot_offset is None:
            offsets = buffer.run.field("base_offset")[places.batch] + places.offset_delta
            chosen = np.flatnonzero((offsets >= split.low) & (offsets < split.high))
        if self._wanted_types is not None:
            names = [type_name(api_key) in self._wanted_types for api_key in range(_ONE_BYTE)]
            chosen = chosen[np.array(names)[buffer.octets[places.value_at[chosen] + 1]]]
        return chosen

    def _assemble(
        self, buffer: Buffer, index: Index, typed: str, structs: pa.Array | None
    ) -> pa.RecordBatch:
        count = len(index)
        plain = _PlainColumns(buffer, index, self._options.payload_types)
        columns = []
        for field in self._schema:
            if field.name in self._options.columns:
                columns.append(plain.column(field.name, field.type))
            elif field.name == typed:
                columns.append(structs)
            else:
                columns.append(pa.nulls(count, field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _api_key(name: str) -> int:
    api_key = schema_of(TYPED[name]).api_key
    assert api_key is not None
    return api_key


def _typed(buffer: Buffer, index: Index, name: str) -> tuple[Index, pa.Array]:
    """The records of one type in the order of their column, and that column."""
    places, octets, shape = buffer.record_positions, buffer.octets, TYPED[name]
    schema = schema_of(shape)
    versions = octets[places.value_at[index] + 2].astype(np.int64)
    kinds = versions << 32 | places.value_size[index]
    order, arrays = [], []
    for kind in np.unique(kinds):
        part = index[kinds == kind]
        version, size = int(kind) >> 32, int(kind) & 0xFFFFFFFF
        rows = rows_at(octets, places.value_at[part], size)
        for within, columns in decode_columns(shape, version, rows[:, _FRAME_BYTES:]):
            order.append(part[within])
            arrays.append(struct_array(columns, schema.body, len(within)))
    return np.concatenate(order), arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _payloads(buffer: Buffer, index: Index, wanted: tuple[str, ...] | None) -> pa.StringArray:
    """The JSON of records of the wanted types (None: all); null for other records."""
    places, octets = buffer.record_positions, buffer.octets
    at, size = places.value_at[index], places.value_size[index]
    api_keys, versions = octets[at + 1].astype(np.int64), octets[at + 2].astype(np.int64)
    kinds = api_keys << 40 | versions << 32 | size
    order = np.argsort(kinds, kind="stable")
    starts = np.flatnonzero(np.diff(kinds[order], prepend=-1))
    placed, arrays = [], []
    for part in np.split(order, starts[1:]):
        kind = int(kinds[part[0]])
        shape = RECORD_TYPES.get(kind >> 40)
        if wanted is not None and (shape is None or shape.__name__ not in wanted):
            placed.append(part)
            arrays.append(pa.nulls(len(part), pa.string()))
            continue
        if shape is None or len(part) < _COLUMNS_FROM:
            placed.append(part)
            arrays.append(_one_by_one(buffer, at[part], size[part]))
            continue
        rows = rows_at(octets, at[part], kind & 0xFFFFFFFF)
        version = kind >> 32 & 0xFF
        for within, columns in decode_columns(shape, version, rows[:, _FRAME_BYTES:]):
            texts = json_strings(columns, schema_of(shape).body, version, len(within))
            placed.append(part[within])
            if texts.null_count:
                texts = _one_by_one(buffer, at[placed[-1]], size[placed[-1]])
            arrays.append(texts)
    back = np.empty(len(index), np.int64)
    back[np.concatenate(placed)] = np.arange(len(index))
    return pa.concat_arrays(arrays).take(pa.array(back))


def _one_by_one(buffer: Buffer, at: NDArray[np.int64], size: NDArray[np.int64]) -> pa.StringArray:
    values = (
        buffer.run.buffer[start : start + count] for start, count in zip(at, size, strict=True)
    )
    return pa.array(map(payload_of, values), pa.string())


class _PlainColumns:
    """The columns that do not depend on a record's type, for some of a buffer's records."""

    def __init__(self, buffer: Buffer, index: Index, payload_types: tuple[str, ...] | None) -> None:
        self.buffer = buffer
        self.index = index
        self.payload_types = payload_types
        self.batch = buffer.record_positions.batch[index]
        self.value_at = buffer.record_positions.value_at[index]

    def column(self, name: str, wanted: pa.DataType) -> pa.Array:
        count = len(self.index)
        split = self.buffer.split
        match name:
            case "offset" if split.snapshot_offset is not None:
                return _repeated(split.snapshot_offset, wanted, count)
            case "offset":
                deltas = self.buffer.record_positions.offset_delta[self.index]
                return pa.array(self.of_batch("base_offset") + deltas, wanted)
            case "leader_epoch":
                return pa.array(self.of_batch("epoch").astype(np.int32), wanted)
            case "timestamp":
                # Both are clipped before the addition, so that it does not overflow.
                width = TIME_MAX_MS - TIME_MIN_MS
                base = np.clip(self.of_batch("base_timestamp_ms"), TIME_MIN_MS, TIME_MAX_MS)
                deltas = self.buffer.record_positions.timestamp_delta_ms[self.index]
                times = np.clip(base + np.clip(deltas, -width, width), TIME_MIN_MS, TIME_MAX_MS)
                return pa.array(times * 1000, pa.int64()).view(wanted)
            case "batch_base_offset":
                return pa.array(self.of_batch("base_offset"), wanted)
            case "record_type":
                found, inverse = np.unique(self.octets_at(1), return_inverse=True)
                names = pa.array([type_name(int(api_key)) for api_key in found], wanted)
                return names.take(pa.array(inverse))
            case "record_version":
                return pa.array(self.octets_at(2).astype(np.int16), wanted)
            case "is_control":
                return _repeated(value=False, wanted=wanted, count=count)
            case "crc_valid":
                return _repeated(value=True, wanted=wanted, count=count)
            case "segment":
                return _repeated(split.path.rpartition("/")[2] or None, wanted, count)
            case "source_node":
                return _repeated(split.source_node, wanted, count)
            case "value":
                return self.values(wanted)
            case "payload" if self.payload_types != ():
                return _payloads(self.buffer, self.index, self.payload_types)
            case _:
                return pa.nulls(count, wanted)

    def of_batch(self, field: str) -> NDArray[np.int64]:
        return self.buffer.run.field(field)[self.batch]

    def octets_at(self, distance: int) -> NDArray[np.uint8]:
        return self.buffer.octets[self.value_at + distance]

    def values(self, wanted: pa.DataType) -> pa.Array:
        """The values' bytes, without a copy: every second span between bounds in the buffer."""
        order = np.argsort(self.value_at, kind="stable")
        at = self.value_at[order]
        bounds = np.empty(2 * len(at), np.int32)
        bounds[::2] = at
        bounds[1::2] = at + self.buffer.record_positions.value_size[self.index][order]
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.buffer.run.buffer)]
        spans = pa.Array.from_buffers(wanted, len(bounds) - 1, buffers)
        place = np.empty(len(at), np.int64)
        place[order] = np.arange(0, len(bounds), 2)
        return spans.take(pa.array(place))


def _repeated(value: Any, wanted: pa.DataType, count: int) -> pa.Array:  # noqa: ANN401
    return pa.repeat(pa.scalar(value, wanted), count)
