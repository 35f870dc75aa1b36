"""Decodes runs of partition records into columns, without an object per record.

The functions have the same effect for many records as `partitions/records.py` has for one. If that
would raise an error, or a record is unusual, they raise NotColumnarError and change nothing: then
the records are handled one by one.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quorate.controller.partitions.directory_index import interned
from quorate.controller.partitions.partition import MIGRATING_DIR, NO_LEADER, NO_SELDOM, RareFields
from quorate.controller.partitions.records import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from quorate.controller.partitions.rows import (
    FIXED,
    ISR,
    LEADER,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    PARTITION_ID_BITS,
    PARTITION_ID_MAX,
    RECOVERY,
    REPLICAS,
    Columns,
    PartitionRows,
    with_width,
)
from quorate.records.codec.schema import SchemaError
from quorate.records.columnar.reader import Constant, Lists, Numbers, Octets, Structs, distinct
from quorate.records.ids import UUID_BYTES, TopicId
from quorate.records.metadata import PartitionChangeRecord, PartitionRecord
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from quorate.controller.partitions.rows import Index, Keys, Rows
    from quorate.records.columnar.pieces import RecordPiece
    from quorate.records.columnar.reader import Column

_MIGRATING: Final = np.frombuffer(MIGRATING_DIR, np.uint8)
_PADDING: Final = -1
# Largest number of values in one array; records with very many replicas are handled one by one.
_CELLS_MAX: Final = 65_536


class NotColumnarError(Exception):
    """The records have to be handled one by one."""


@value_type
class PartitionColumns:
    """Columns of PartitionRecords, in log order; `topics` has shape (n, 16).

    `directories` has shape (n, width, 16); `seldom` is keyed by the position among these records.
    """

    topics: NDArray[np.uint8]
    partition_ids: Keys
    columns: Columns
    directories: NDArray[np.uint8]
    seldom: Mapping[int, RareFields]

    def __len__(self) -> int:
        return len(self.partition_ids)

    def topic_runs(self) -> list[tuple[int, TopicId]]:
        """Starts of runs of records of one topic, each with the topic's id."""
        return _topic_runs(self.topics)

    def rows(
        self, runs: Sequence[tuple[int, TopicId]], numbers: Mapping[TopicId, int]
    ) -> PartitionRows:
        """The rows of these records, in key order.

        `runs` are the topics' runs. Raises NotColumnarError if two are about the same partition.
        """
        keys, topic_ids = _keys(runs, self.partition_ids, numbers), [id_ for _, id_ in runs]
        columns, directories, seldom = self.columns, self.directories, self.seldom
        if not (keys[1:] > keys[:-1]).all():
            order, keys = ordered(keys)
            columns = Columns(*(column[order] for column in columns))
            directories = directories[order]
            seldom = {int(np.flatnonzero(order == at)[0]): each for at, each in seldom.items()}
            by_number = {numbers[topic_id]: topic_id for topic_id in topic_ids}
            topic_ids = [by_number[n] for n in distinct(keys >> PARTITION_ID_BITS).tolist()]
        count, width = columns.replicas.shape
        places, known = interned(directories.reshape(-1, UUID_BYTES))
        return PartitionRows.of_columns(
            keys,
            _without_repetitions(topic_ids),
            columns,
            (places.reshape(count, width), known),
            {int(keys[at]): each for at, each in seldom.items()},
        )


@value_type
class PartitionChangeColumns:
    """Columns of PartitionChangeRecords that only change leaders, ISRs and recovery.

    `leaders` and `recovery` have Kafka's values for "no change" in rows without one. `isr_sizes` is
    -1 if the ISR does not change; `isr` has shape (n, width), padded with -1.
    """

    topics: NDArray[np.uint8]
    partition_ids: Keys
    leaders: Rows
    recovery: Rows
    isr_sizes: Rows
    isr: Rows

    def __len__(self) -> int:
        return len(self.partition_ids)

    def topic_runs(self) -> list[tuple[int, TopicId]]:
        """Starts of runs of records of one topic, each with the topic's id."""
        return _topic_runs(self.topics)

    def keys(self, runs: Sequence[tuple[int, TopicId]], numbers: Mapping[TopicId, int]) -> Keys:
        """The keys of the partitions that change, given the topics' runs."""
        return _keys(runs, self.partition_ids, numbers)

    def selected(self, order: Index) -> PartitionChangeColumns:
        """The changes at these positions, in that order."""
        return PartitionChangeColumns(
            self.topics[order],
            self.partition_ids[order],
            self.leaders[order],
            self.recovery[order],
            self.isr_sizes[order],
            self.isr[order],
        )

    def applied(self, old: PartitionRows) -> PartitionRows:
        """The partitions after the changes; `old` has a row for each of them.

        Raises NotColumnarError if a leader is elected that was not in sync, since that is counted,
        and if an epoch would overflow.
        """
        fixed, width = old.values[:, :FIXED].copy(), max(old.width, self.isr.shape[1])
        sets_leader = self.leaders != NO_LEADER_CHANGE
        elected = sets_leader & (self.leaders != NO_LEADER) & (self.leaders != fixed[:, LEADER])
        if (elected & ~(old.isr == self.leaders[:, None]).any(axis=1)).any():
            raise NotColumnarError
        if old.has_last_epoch.any():
            raise NotColumnarError
        fixed[:, LEADER] = np.where(sets_leader, self.leaders, fixed[:, LEADER])
        fixed[:, LEADER_EPOCH] += sets_leader
        fixed[:, PARTITION_EPOCH] += 1
        has_recovery, has_isr = self.recovery != NO_RECOVERY_CHANGE, self.isr_sizes >= 0
        fixed[:, RECOVERY] = np.where(has_recovery, self.recovery, fixed[:, RECOVERY])
        fixed[:, ISR] = np.where(has_isr, self.isr_sizes, fixed[:, ISR])
        values = with_width(old.values, width)
        values = values.copy() if values is old.values else values
        values[:, :FIXED] = fixed
        isr = values[:, FIXED + width :]
        isr[has_isr] = _PADDING
        isr[has_isr, : self.isr.shape[1]] = self.isr[has_isr]
        places = np.zeros((len(old), width), old.places.dtype)
        places[:, : old.width] = old.places
        return PartitionRows(old.keys, old.topic_ids, values, places, old.directories, old.seldom)


def read_partitions(piece: RecordPiece, index: Index) -> PartitionColumns:
    """The PartitionRecords at these positions of a piece. Raises NotColumnarError."""
    shapes = _shapes(piece, PartitionRecord, index)
    count, width = len(index), 0
    for _, columns in shapes:
        width = max(width, _size(columns.fields["replicas"]), _size(columns.fields["isr"]))
    if count * width > _CELLS_MAX:
        raise NotColumnarError
    topics, partition_ids = _whose(shapes, count)
    fixed = np.empty((count, FIXED), np.int32)
    replicas, isr = (np.full((count, width), -1, np.int32) for _ in range(2))
    directories = np.zeros((count, width, UUID_BYTES), np.uint8)
    seldom: dict[int, RareFields] = {}
    for at, columns in shapes:
        # Rows that are all written need no index.
        to = slice(None) if len(at) == count else at
        for place, name in _FIXED_FIELDS.items():
            fixed[to, place] = _numbers(columns.fields[name], len(at))
        size, isr_size = _size(columns.fields["replicas"]), _size(columns.fields["isr"])
        fixed[to, REPLICAS], fixed[to, ISR] = size, isr_size
        replicas[to, :size] = _list(columns.fields["replicas"], len(at))
        isr[to, :isr_size] = _list(columns.fields["isr"], len(at))
        directories[to, :size] = _directories(columns.fields["directories"], len(at), size)
        seldom.update(_seldom(at, columns))
    return PartitionColumns(
        topics, partition_ids, Columns(fixed, replicas, isr), directories, seldom
    )


_FIXED_FIELDS: Final = {
    LEADER: "leader",
    LEADER_EPOCH: "leader_epoch",
    PARTITION_EPOCH: "partition_epoch",
    RECOVERY: "leader_recovery_state",
}
_SELDOM_FIELDS: Final = (
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
)


def read_changes(piece: RecordPiece, index: Index) -> PartitionChangeColumns:
    """The PartitionChangeRecords at these positions of a piece.

    Raises NotColumnarError if any changes more than leaders, ISRs and recovery.
    """
    shapes = _shapes(piece, PartitionChangeRecord, index)
    for _, columns in shapes:
        for name in ("replicas", "directories", *_SELDOM_FIELDS):
            if columns.fields[name] != Constant(None):
                raise NotColumnarError
    count, width = len(index), max([_size(c.fields["isr"]) for _, c in shapes], default=0)
    if count * width > _CELLS_MAX:
        raise NotColumnarError
    topics, partition_ids = _whose(shapes, count)
    leaders, recovery, isr_sizes = (np.full(count, -1, np.int32) for _ in range(3))
    isr = np.full((count, width), -1, np.int32)
    for at, columns in shapes:
        leaders[at] = _numbers(columns.fields["leader"], len(at))
        recovery[at] = _numbers(columns.fields["leader_recovery_state"], len(at))
        if columns.fields["isr"] != Constant(None):
            found = _list(columns.fields["isr"], len(at))
            isr_sizes[at] = found.shape[1]
            isr[at, : found.shape[1]] = found
    return PartitionChangeColumns(topics, partition_ids, leaders, recovery, isr_sizes, isr)


# --- common ---------------------------------------------------------------------------------------


def _shapes(
    piece: RecordPiece,
    record_type: Any,  # noqa: ANN401
    index: Index,
) -> list[tuple[Index, Structs]]:
    try:
        return list(piece.columns(record_type, index))
    except SchemaError as error:
        raise NotColumnarError from error


def _whose(shapes: Sequence[tuple[Index, Structs]], count: int) -> tuple[NDArray[np.uint8], Keys]:
    """Topic ids and partition ids of the records."""
    topics = np.empty((count, UUID_BYTES), np.uint8)
    partition_ids = np.empty(count, np.int64)
    for at, columns in shapes:
        topic_ids = columns.fields["topic_id"]
        assert isinstance(topic_ids, Octets)
        topics[at] = topic_ids.values
        partition_ids[at] = _numbers(columns.fields["partition_id"], len(at))
    if count and not 0 <= partition_ids.min() <= partition_ids.max() <= PARTITION_ID_MAX:
        raise NotColumnarError
    return topics, partition_ids


def _topic_runs(topics: NDArray[np.uint8]) -> list[tuple[int, TopicId]]:
    halves = np.ascontiguousarray(topics).view(np.uint64)
    differs = (halves[1:] != halves[:-1]).any(axis=1)
    starts = [0, *(np.flatnonzero(differs) + 1).tolist()] if len(topics) else []
    data = topics[starts].tobytes()
    ids = [TopicId(data[at : at + UUID_BYTES]) for at in range(0, len(data), UUID_BYTES)]
    return list(zip(starts, ids, strict=True))


def _keys(
    runs: Sequence[tuple[int, TopicId]], partition_ids: Keys, numbers: Mapping[TopicId, int]
) -> Keys:
    starts = [start for start, _ in runs]
    sizes = np.diff([*starts, len(partition_ids)])
    first = np.array([numbers[topic_id] for _, topic_id in runs], np.int64) << PARTITION_ID_BITS
    keys: Keys = np.repeat(first, sizes) | partition_ids
    return keys


def ordered(keys: Keys) -> tuple[Index, Keys]:
    """The sort order of keys, and the sorted keys. Raises NotColumnarError for equal keys."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        raise NotColumnarError
    return order, keys


def _without_repetitions(topic_ids: Sequence[TopicId]) -> tuple[TopicId, ...]:
    return tuple([topic_id for topic_id, _ in groupby(topic_ids)])


def _numbers(column: Column, count: int) -> NDArray[Any]:
    if isinstance(column, Numbers):
        return column.values
    assert isinstance(column, Constant)
    return np.full(count, column.value)


def _list(column: Column, count: int) -> NDArray[Any]:
    """Shape (count, size): lists of numbers; size 0 if the column is null or missing."""
    if not isinstance(column, Lists):
        return np.empty((count, 0), np.int32)
    assert isinstance(column.elements, Numbers)
    return column.elements.values.reshape(count, column.count)


def _size(column: Column) -> int:
    return column.count if isinstance(column, Lists) else 0


def _directories(column: Column, count: int, size: int) -> NDArray[np.uint8]:
    """Shape (count, size, 16); if none are given, the id that Kafka uses for that."""
    given = _size(column)
    if not given:
        return np.broadcast_to(_MIGRATING, (count, size, UUID_BYTES))
    if given != size:
        raise NotColumnarError
    assert isinstance(column, Lists)
    return column.elements.values.reshape(count, size, UUID_BYTES)


def _seldom(at: Index, columns: Structs) -> Iterator[tuple[int, RareFields]]:
    if not any(_size(columns.fields[name]) for name in _SELDOM_FIELDS):
        return
    lists = [_list(columns.fields[name], len(at)).tolist() for name in _SELDOM_FIELDS]
    for place, values in zip(at.tolist(), zip(*lists, strict=True), strict=True):
        seldom = RareFields(*map(tuple, values))
        assert seldom != NO_SELDOM
        yield place, seldom
