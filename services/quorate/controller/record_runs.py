"""Splits records into single records and runs of partition records that are replayed as columns.

Nearly all records of a large log are partition records, and come in runs: when topics are created,
or when the partitions of a failed broker change. A run is applied to the delta in one step, as
columns. Records for which that is not possible are applied one by one, with the same result.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from quorate.controller.partitions.record_columns import (
    NotColumnarError,
    ordered,
    read_changes,
    read_partitions,
)
from quorate.records.batch import read_runs
from quorate.records.columnar.pieces import iter_pieces
from quorate.records.metadata import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from quorate.controller.image import MetadataDelta
    from quorate.records.batch import BatchHeader
    from quorate.records.columnar.pieces import RecordPiece
    from quorate.records.ids import TopicId

# Below this size a run costs more than its records one by one.
RUN_MIN: Final = 48
# Below this size, searching a batch for runs costs more than decoding its records one by one.
COLUMNS_MIN: Final = 96
# Number of records decoded together before they are replayed, which suits the CPU caches.
_DECODED_AT_ONCE: Final = 64
# With fewer changes per part of the tree a run is not faster, since the part's rows are copied.
SPREAD_MIN: Final = 4
_OTHER, _CREATION, _CHANGE = range(3)


class RecordRun:
    """Neighbouring records of a piece that may be applied together."""

    def __init__(self, piece: RecordPiece, start: int, stop: int, kind: int) -> None:
        self._record_piece = piece
        self._start = start
        self._stop = stop
        self._kind = kind

    def __len__(self) -> int:
        return self._stop - self._start

    def records(self) -> Iterator[MetadataRecord]:
        """The records one by one. Raises SchemaError if one does not decode."""
        return self._record_piece.records(self._start, self._stop)

    def replay(
        self, delta: MetadataDelta, replay_one: Callable[[MetadataRecord, int], None]
    ) -> bool:
        """Apply all of them together, or change nothing and return False.

        `replay_one` takes those that are not about partitions, with their positions in the run.
        """
        try:
            if self._kind == _CREATION:
                self._create(delta, replay_one)
            else:
                self._change(delta)
        except NotColumnarError:
            return False
        return True

    def _create(
        self, delta: MetadataDelta, replay_one: Callable[[MetadataRecord, int], None]
    ) -> None:
        """Create topics with the partitions that follow them, and set their configs."""
        is_partition = self._record_piece.is_of(PartitionRecord)[self._start : self._stop]
        at = np.flatnonzero(is_partition)
        partitions = read_partitions(self._record_piece, at + self._start)
        others = np.flatnonzero(~is_partition).tolist()
        records = [self._record_piece.record(self._start + place) for place in others]
        made = {
            record.topic_id: place
            for place, record in zip(others, records, strict=True)
            if isinstance(record, TopicRecord)
        }
        topics = delta.topics
        runs = partitions.topic_runs()
        for first, topic_id in runs:
            if topic_id not in topics.by_id and made.get(topic_id, len(self)) > at[first]:
                raise NotColumnarError
        # The only remaining error is a duplicate partition.
        numbers = {
            topic_id: number for number, topic_id in enumerate(made, topics.next_topic_number)
        }
        for _, topic_id in runs:
            if topic_id not in numbers:
                numbers[topic_id] = topics.by_id[topic_id].number
        rows = partitions.rows(runs, numbers)
        for place, record in zip(others, records, strict=True):
            replay_one(record, place)
        if len(rows):
            topics.put_rows(rows)

    def _change(self, delta: MetadataDelta) -> None:
        changes = read_changes(self._record_piece, np.arange(self._start, self._stop))
        topics = delta.topics
        numbers: dict[TopicId, int] = {}
        runs = changes.topic_runs()
        for _, topic_id in runs:
            topic = topics.by_id.get(topic_id)
            if topic is None:
                raise NotColumnarError
            numbers[topic_id] = topic.number
        order, keys = ordered(changes.keys(runs, numbers))
        tree = topics.flush().rows
        if tree.parts_touched(keys) * SPREAD_MIN > len(keys):
            raise NotColumnarError
        old = tree.rows_at(keys)
        if len(old) < len(keys):
            raise NotColumnarError
        topics.put_rows(changes.selected(order).applied(old), old)


Item: TypeAlias = MetadataRecord | RecordRun


def batch_items(buffer: bytes, position: int, header: BatchHeader) -> Iterator[Item]:
    """All records of the verified batch at `position`, in order, as runs if that is faster.

    Raises CorruptBatchError, and SchemaError for an invalid record.
    """
    if header.record_count >= COLUMNS_MIN:
        yield from piece_items(iter_pieces(buffer, position, header))
        return
    for run in read_runs(buffer, position, header):
        for start in range(0, len(run), _DECODED_AT_ONCE):
            part = run[start : start + _DECODED_AT_ONCE]
            yield from [decode_record(record.value or b"")[0] for record in part]


def piece_items(pieces: Iterable[RecordPiece]) -> Iterator[Item]:
    """All records of these pieces in order, decoded unless they are in runs.

    Raises SchemaError if one does not decode.
    """
    for piece in pieces:
        is_change, is_partition = piece.is_of(PartitionChangeRecord), piece.is_of(PartitionRecord)
        kinds = np.where(is_change, _CHANGE, np.where(is_partition, _CREATION, _OTHER))
        for record_type in (TopicRecord, ConfigRecord):
            kinds[piece.is_of(record_type)] = _CREATION
        bounds = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(piece)]
        many = np.cumsum(np.append(0, is_change | is_partition))[bounds].tolist()
        alone = 0
        for (start, before), (stop, behind) in pairwise(zip(bounds, many, strict=True)):
            if behind - before >= RUN_MIN:
                yield from piece.records(alone, start)
                yield RecordRun(piece, start, stop, int(kinds[start]))
                alone = stop
        yield from piece.records(alone, len(piece))
