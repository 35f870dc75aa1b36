"""The records of a batch in pieces, decoded only on request.

A piece has the position, type and version of each of its records, so that records of some types can
be read as columns and all others one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.records.batch import CorruptBatchError, read_record
from quorate.records.codec.schema import schema_of
from quorate.records.columnar.positions import iter_positions, rows_at
from quorate.records.columnar.reader import decode_columns, distinct
from quorate.records.metadata import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from quorate.records.batch import BatchHeader
    from quorate.records.columnar.positions import RecordPositions
    from quorate.records.columnar.reader import Structs
    from quorate.records.metadata import KnownRecord, MetadataRecord

    Index = NDArray[np.intp]

# About a millisecond of work; many of these are processed in one event-loop iteration.
PIECE_RECORDS: Final = 1024
# The key of records with another frame than ours; no known type has it.
NO_TYPE: Final = 0xFF
# Frame version, api key and version take a byte each in every record that this release knows.
_FRAME_BYTES: Final = 3
_FRAME_VERSION: Final = 1
_ONE_BYTE: Final = 0x80


class RecordPiece:
    """Consecutive data records of one batch.

    `api_keys` and `versions` have one element per record; a type is NO_TYPE if a record's layout
    does not reveal it without decoding.
    """

    def __init__(
        self,
        buffer: bytes,
        position: int,
        header: BatchHeader,
        record_positions: RecordPositions,
        begin: Index,
    ) -> None:
        """`position` is the batch's position in the buffer, `begin` has those of the records."""
        self._buffer = buffer
        self._octets = np.frombuffer(buffer, np.uint8)
        self._position = position
        self._header = header
        self._record_positions = record_positions
        self._begin = begin
        has_frame = record_positions.is_plain & (record_positions.value_size >= _FRAME_BYTES)
        at = np.where(has_frame, record_positions.value_at, 0)
        frame = self._octets[at], self._octets[at + 1], self._octets[at + 2]
        is_known = has_frame & (frame[0] == _FRAME_VERSION)
        is_known &= (frame[1] < _ONE_BYTE) & (frame[2] < _ONE_BYTE)
        self.api_keys = np.where(is_known, frame[1], NO_TYPE).astype(np.uint8)
        self.versions = frame[2]

    def __len__(self) -> int:
        return len(self.api_keys)

    def record(self, index: int) -> MetadataRecord:
        """Decode one record. Raises CorruptBatchError and SchemaError."""
        if not self._record_positions.is_plain[index]:
            return decode_record(self._read_whole(index))[0]
        at, size = (
            int(self._record_positions.value_at[index]),
            int(self._record_positions.value_size[index]),
        )
        return decode_record(self._buffer[at : at + max(0, size)])[0]

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[MetadataRecord]:
        """Yield some records, each decoded when it is requested. Raises the errors of `record`."""
        places, span, buffer = self._record_positions, slice(start, stop), self._buffer
        # Access to single array elements is slow.
        found = zip(
            places.is_plain[span].tolist(),
            places.value_at[span].tolist(),
            places.value_size[span].tolist(),
            strict=True,
        )
        for index, (is_plain, at, size) in enumerate(found, start):
            if is_plain:
                yield decode_record(buffer[at : at + max(0, size)])[0]
            else:
                yield decode_record(self._read_whole(index))[0]

    def _read_whole(self, index: int) -> bytes:
        try:
            record, _ = read_record(self._buffer, int(self._begin[index]), self._header)
        except (IndexError, ValueError) as error:
            raise CorruptBatchError(self._position, f"record {index}: {error}") from error
        return record.value or b""

    def is_of(self, record_type: type[KnownRecord]) -> NDArray[np.bool_]:
        """A mask of the records of that type, in a version that this release knows."""
        schema = schema_of(record_type)
        first, last = schema.versions.first, schema.versions.last
        is_known = (self.versions >= first) & (self.versions <= last)
        found: NDArray[np.bool_] = is_known & (self.api_keys == schema.api_key)
        return found

    def columns(
        self, record_type: type[KnownRecord], index: Index
    ) -> Iterator[tuple[Index, Structs]]:
        """Yield the records at these indexes, which are of that type: one pair per layout.

        The first of a pair has the elements of `index` with that layout, as positions in it. Raises
        SchemaError if any record violates its schema.
        """
        sizes = self._record_positions.value_size[index]
        kinds = self.versions[index].astype(np.int64) << 32 | sizes
        for kind in distinct(kinds).tolist():
            part = np.flatnonzero(kinds == kind)
            at = self._record_positions.value_at[index[part]]
            rows = rows_at(self._octets, at, kind & 0xFFFFFFFF)[:, _FRAME_BYTES:]
            for within, columns in decode_columns(record_type, kind >> 32, rows):
                yield part[within], columns


def iter_pieces(
    buffer: bytes, position: int, header: BatchHeader, count: int = PIECE_RECORDS
) -> Iterator[RecordPiece]:
    """Yield all records of the verified batch at `position`, at most `count` per piece.

    Raises CorruptBatchError if the records do not fill the batch exactly.
    """
    for places, begin in iter_positions(buffer, position, header, count):
        yield RecordPiece(buffer, position, header, places, begin)
