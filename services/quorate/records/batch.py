"""Record batches, magic 2: encode, decode, verify and restamp.

A batch is the unit in which a metadata log is appended, fetched and verified: a header of 61 bytes,
then the records. The CRC-32C covers everything from the attributes on. Base offset and leader epoch
come before it, so that a leader can stamp a batch that another process built. KRaft writes one
layout only (see `encode_batch`). Other layouts that the format allows can be read, except
compressed ones, which Kafka never uses in this log.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.records.codec.varint import Buffer, encode_varint, read_varint
from quorate.records.crc import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEADER_BYTES: Final = 61
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")
_BEFORE_CRC: Final = struct.Struct(">qiibI")
_PLACE: Final = struct.Struct(">qii")
_LENGTH: Final = struct.Struct(">i")
CRC_END: Final = HEADER_BYTES - _AFTER_CRC.size
LENGTH_AT: Final = 8
LENGTH_END: Final = 12
MAGIC: Final = 2
_NO_PRODUCER: Final = -1
_COMPRESSION_BITS: Final = 0x07
CONTROL_BIT: Final = 0x20
KNOWN_BITS: Final = CONTROL_BIT

# A record is: length, attributes and timestamp delta, offset delta, key, value, headers.
_PLAIN_RECORD: Final = b"\0\0"
_NO_KEY: Final = encode_varint(-1)
_NO_HEADERS: Final = b"\0"
# The number of deltas whose varint has one byte, and of records read or written in one go.
_ONE_BYTE_DELTAS: Final = 64
_RUN: Final = 1024
_NOWHERE: Final = b"\xff" * 16


class CorruptBatchError(ValueError):
    """The bytes at `position` are not a complete, valid batch; `reason` is the text of why."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"batch at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class BatchHeader(NamedTuple):
    """The fields of a batch's header in their order on the wire. A tuple, as records are.

    `batch_length` counts the bytes after itself; `epoch` is Kafka's partitionLeaderEpoch.
    """

    base_offset: int
    batch_length: int
    epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The size of the batch, including the header."""
        return LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)


class Record(NamedTuple):
    """One record of a batch. A tuple, because reading a log creates millions of them."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, of which only the lengths and the magic are checked.

    Raises CorruptBatchError if the header is truncated or has impossible values.
    """
    if len(buffer) - position < HEADER_BYTES:
        raise CorruptBatchError(
            position, f"{len(buffer) - position} bytes left, a header takes {HEADER_BYTES}"
        )
    header = BatchHeader._make(_HEADER.unpack_from(buffer, position))
    size_bytes = LENGTH_END + header.batch_length
    if size_bytes < HEADER_BYTES:
        raise CorruptBatchError(position, f"length {header.batch_length} is below a header's")
    if size_bytes > BATCH_BYTES_MAX:
        raise CorruptBatchError(
            position, f"length {header.batch_length} is above the limit of {BATCH_BYTES_MAX} bytes"
        )
    if header.magic != MAGIC:
        raise CorruptBatchError(position, f"magic {header.magic} instead of {MAGIC}")
    if header.base_offset < 0:
        raise CorruptBatchError(position, f"base offset {header.base_offset} is negative")
    if header.epoch < 0:
        raise CorruptBatchError(position, f"leader epoch {header.epoch} is negative")
    return header


def check_batch(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Verify the batch at `position` and return its header.

    Raises CorruptBatchError if the batch is truncated, its CRC does not match, or its layout is
    not allowed in a metadata log (compressed, transactional, offsets missing).
    """
    header = read_header(buffer, position)
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptBatchError(
            position, f"{len(buffer) - position} of {header.size_bytes} bytes are there"
        )
    covered = memoryview(buffer)[position + CRC_END : end]
    crc = crc32c(covered)
    if crc != header.crc:
        raise CorruptBatchError(position, f"CRC is {crc:08x}, the header says {header.crc:08x}")
    if header.attributes & _COMPRESSION_BITS:
        raise CorruptBatchError(position, "compressed batches do not belong into a metadata log")
    if header.attributes & ~KNOWN_BITS:
        raise CorruptBatchError(position, f"unknown attributes 0x{header.attributes & 0xFFFF:x}")
    if header.record_count < 1 or header.record_count != header.last_offset_delta + 1:
        raise CorruptBatchError(
            position,
            f"{header.record_count} records, but a last offset delta of {header.last_offset_delta}",
        )
    return header


def iter_batches(
    buffer: Buffer, position: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of the batches that fill `position`..`end`, each one verified.

    Raises CorruptBatchError at the first invalid batch, after the batches before it.
    """
    limit = len(buffer) if end is None else end
    view = memoryview(buffer)[:limit]
    while position < limit:
        header = check_batch(view, position)
        yield position, header
        position += header.size_bytes


def read_records(buffer: Buffer, position: int, header: BatchHeader) -> list[Record]:
    """All records of the verified batch at `position`, whose header is `header`.

    Raises CorruptBatchError if the records do not fill the batch exactly.
    """
    return [record for run in read_runs(buffer, position, header) for record in run]


def read_runs(buffer: Buffer, position: int, header: BatchHeader) -> Iterator[list[Record]]:
    """Yield the same records in parts, for callers that must not block on a large batch."""
    data = bytes(memoryview(buffer)[position : position + header.size_bytes])
    at, count = HEADER_BYTES, 0
    for deltas in _delta_runs(header.record_count):
        records: list[Record] = []
        try:
            at = _read_run(data, at, header=header, deltas=deltas, first=count, records=records)
        except (IndexError, ValueError) as error:
            bad = count + len(records)
            raise CorruptBatchError(position, f"record {bad}: {error}") from error
        count += len(records)
        yield records
    if at != len(data):
        raise CorruptBatchError(position, f"{len(data) - at} bytes behind the last record")


def encode_batch(
    values: Sequence[bytes],
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    epoch: int = 0,
    keys: Sequence[bytes] | None = None,
    is_control: bool = False,
) -> bytes:
    """Encode one batch of these values, byte for byte as KRaft writes it.

    No producer, no compression, no headers; every record has the batch's timestamp. `keys` has one
    key per value, or is None. Raises ValueError without values, or above BATCH_BYTES_MAX.
    """
    if not values:
        raise ValueError("a batch holds one record at least")
    body = _encode_values(values) if keys is None else _encode_pairs(keys, values)
    size_bytes = HEADER_BYTES + len(body)
    if size_bytes > BATCH_BYTES_MAX:
        raise ValueError(
            f"{len(values)} records take {size_bytes} bytes, a batch at most {BATCH_BYTES_MAX}: "
            "write them as several batches"
        )
    guarded = (
        _AFTER_CRC.pack(
            CONTROL_BIT if is_control else 0,
            len(values) - 1,
            timestamp_ms,
            timestamp_ms,
            _NO_PRODUCER,
            _NO_PRODUCER,
            _NO_PRODUCER,
            len(values),
        )
        + body
    )
    head = _BEFORE_CRC.pack(base_offset, size_bytes - LENGTH_END, epoch, MAGIC, crc32c(guarded))
    return head + guarded


def restamp(batch: Buffer, base_offset: int, epoch: int) -> bytes:
    """The same batch with another offset and epoch, which the CRC does not cover."""
    (length,) = _LENGTH.unpack_from(batch, 8)
    return _PLACE.pack(base_offset, length, epoch) + memoryview(batch)[_PLACE.size :]


@lru_cache(maxsize=64)
def _deltas(first: int, stop: int) -> tuple[bytes, ...]:
    return tuple(encode_varint(delta) for delta in range(first, stop))


def _delta_runs(count: int) -> Iterator[tuple[bytes, ...]]:
    """Yield the offset deltas 0..count-1 as varints, in runs of the same number of bytes."""
    first, stop = 0, _ONE_BYTE_DELTAS
    while first < count:
        run = _deltas(first, stop)
        yield run if stop <= count else run[: count - first]
        first, stop = stop, (stop // _RUN + 1) * _RUN


def _encode_values(values: Sequence[bytes]) -> bytes:
    parts: list[bytes] = []
    first = 0
    for deltas in _delta_runs(len(values)):
        run = values[first : first + len(deltas)]
        first += len(run)
        heads: dict[int, bytes] = {}
        middles: dict[int, bytes] = {}
        for length in {len(value) for value in run}:
            size = encode_varint(length)
            middles[length] = _NO_KEY + size
            head = encode_varint(length + len(deltas[0]) + len(size) + 4) + _PLAIN_RECORD
            # The last byte of the previous record is the first one here.
            heads[length] = _NO_HEADERS + head
        for value, delta in zip(run, deltas, strict=True):
            length = len(value)
            parts += heads[length], delta, middles[length], value
    parts[0] = parts[0][len(_NO_HEADERS) :]
    parts.append(_NO_HEADERS)
    return b"".join(parts)


def _encode_pairs(keys: Sequence[bytes], values: Sequence[bytes]) -> bytes:
    records = []
    for delta, (key, value) in enumerate(zip(keys, values, strict=True)):
        record = b"".join(
            (
                _PLAIN_RECORD,
                encode_varint(delta),
                encode_varint(len(key)),
                key,
                encode_varint(len(value)),
                value,
                _NO_HEADERS,
            )
        )
        records.append(encode_varint(len(record)) + record)
    return b"".join(records)


def _read_run(
    data: bytes,
    at: int,
    *,
    header: BatchHeader,
    deltas: tuple[bytes, ...],
    first: int,
    records: list[Record],
) -> int:
    """Append the records with these offset deltas to `records`; returns the position after them.

    `first` is the index of the first of them in the batch. A record with KRaft's layout is
    recognised by its bytes: its length determines the length of its value, and so the bytes before
    the value. Records of other layouts are read field by field.
    """
    new, append, timestamp_ms = tuple.__new__, records.append, header.base_timestamp_ms
    offset = header.base_offset + first
    width = len(deltas[0])
    expected: dict[int, tuple[bytes, int]] = {}
    for delta in deltas:
        start = at
        length = data[at]
        if length < 0x80 and not length & 1:
            length >>= 1
            at += 1
        else:
            length, at = read_varint(data, at)
        try:
            middle, skip = expected[length]
        except KeyError:
            middle, skip = expected[length] = _before_value(length, width)
        end = at + length
        if data.startswith(b"\0\0%b%b" % (delta, middle), at) and data[end - 1] == 0:
            append(new(Record, (offset, timestamp_ms, None, data[at + skip : end - 1], ())))
            at = end
        else:
            record, at = read_record(data, start, header)
            if record.offset != offset:
                raise ValueError(f"offset {record.offset} instead of {offset}")
            append(record)
        offset += 1
    return at


def _before_value(length: int, width: int) -> tuple[bytes, int]:
    """The bytes between offset delta and value in a record of `length` bytes, and their end.

    For a length that no such record can have, they are bytes that no record contains.
    """
    rest = length - width - 4
    for size_bytes in range(1, 6):
        size = encode_varint(max(0, rest - size_bytes))
        if len(size) == size_bytes <= rest:
            return _NO_KEY + size, width + 3 + size_bytes
    return _NOWHERE, 0


def read_record(data: bytes, at: int, header: BatchHeader) -> tuple[Record, int]:
    """The record at `at`, of any layout, and the position after it.

    Raises ValueError or IndexError if its fields do not fill it.
    """
    length, at = read_varint(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise ValueError(f"a length of {length}")
    timestamp_delta, at = read_varint(data, at + 1)
    offset_delta, at = read_varint(data, at)
    key, at = _read_bytes(data, at, end)
    value, at = _read_bytes(data, at, end)
    count, at = read_varint(data, at)
    headers = []
    for _ in range(count):
        name, at = _read_bytes(data, at, end)
        content, at = _read_bytes(data, at, end)
        headers.append((str(name or b"", "utf-8"), content))
    if at != end:
        raise ValueError(f"its fields end at {at}, its length says {end}")
    offset = header.base_offset + offset_delta
    timestamp_ms = header.base_timestamp_ms + timestamp_delta
    return Record(offset, timestamp_ms, key, value, tuple(headers)), end


def _read_bytes(data: bytes, at: int, limit: int) -> tuple[bytes | None, int]:
    length, at = read_varint(data, at)
    if length < 0:
        return None, at
    if at + length > limit:
        raise ValueError(f"{length} bytes at {at} reach past the record's end")
    return data[at : at + length], at + length
