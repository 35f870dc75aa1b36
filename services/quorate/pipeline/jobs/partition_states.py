"""Reconstructs every state of every partition from its records, in Arrow and numpy, without Spark.

Events are sorted by topic, partition and offset. Memory holds one window of them at a time and the
last state of the previous window, so neither a long log nor a busy partition needs more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Index = NDArray[np.int64]

TOPIC: Final = -1
"""The partition number of events from a TopicRecord or a RemoveTopicRecord."""
UNKNOWN: Final = -(1 << 40)
"""The value of a number that no record has set."""

# Fields of a topic and of a partition whose value holds until a record changes it.
_OF_TOPIC: Final = ("topic", "removed_offset", "removed")
_OF_PARTITION: Final = (
    "leader",
    "replicas",
    "isr",
    "adding_replicas",
    "removing_replicas",
    "eligible_replicas",
)
_ROW_BITS: Final = 32
_ROW: Final = 1 << _ROW_BITS
_INT32_MIN: Final = -(1 << 31)


class SortedLists:
    """A column of lists of 32-bit numbers, as sets: each row's elements in ascending order.

    `keys` has the elements of all rows, row by row, with the row number in the bits above the
    element. `lengths` is -1 for null.
    """

    def __init__(self, array: pa.ListArray) -> None:
        lengths = pc.fill_null(pc.list_value_length(array), -1)
        self.lengths: Index = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
        rows = np.repeat(np.arange(len(array)), np.maximum(self.lengths, 0))
        elements = array.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        self.keys: Index = rows << _ROW_BITS | (elements - _INT32_MIN)
        self.keys.sort()

    @property
    def rows(self) -> Index:
        """The row of each key."""
        return self.keys >> _ROW_BITS

    def differs(self) -> Flags:
        """For each row, True if it differs from the previous row; null differs from empty."""
        lengths, rows = self.lengths, self.rows
        found = np.ones(len(lengths), np.bool_)
        found[:1] = False
        np.not_equal(lengths[1:], lengths[:-1], out=found[1:])
        # If both rows are equally long, the matching element is that many positions earlier.
        at = np.flatnonzero(~found[rows] & (rows > 0))
        differs = self.keys[at] - self.keys[at - lengths[rows[at]]] != _ROW
        found[rows[at[differs]]] = True
        return found

    def gains_and_losses(self, differs: Flags) -> tuple[Flags, Flags]:
        """For each row, True if it gained, and True if it lost an element since the previous row.

        `differs` is the result of `differs()`. Both are False for a row that is null or follows a
        null row.
        """
        is_known = self.lengths >= 0
        compared = differs.copy()
        compared[1:] &= is_known[1:] & is_known[:-1]
        rows = self.rows
        gains, losses = np.zeros_like(differs), np.zeros_like(differs)
        now = compared[rows]
        gained = ~_is_in(self.keys[now] - _ROW, self.keys)
        gains[rows[now][gained]] = True
        before = np.append(compared[1:], False)[rows]
        lost = ~_is_in(self.keys[before] + _ROW, self.keys)
        losses[rows[before][lost] + 1] = True
        return gains, losses

    def without(self, others: SortedLists, chosen: Flags) -> Index:
        """The keys in the rows `chosen` that the same row of `others` lacks."""
        keys = self.keys[chosen[self.rows]]
        return keys[~_is_in(keys, others.keys)]

    def have(self, rows: Index, elements: Index) -> Flags:
        """For each of these rows, True if it has the corresponding element; rows are ascending."""
        return _is_in(rows << _ROW_BITS | (elements - _INT32_MIN), self.keys)


def elements_of(keys: Index) -> NDArray[np.int32]:
    """The elements in keys of `SortedLists`."""
    return ((keys & (_ROW - 1)) + _INT32_MIN).astype(np.int32)


def _is_in(wanted: Index, keys: Index) -> Flags:
    """For each wanted key, True if it is among the keys; both are in ascending order."""
    if not len(keys):
        return np.zeros(len(wanted), np.bool_)
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    found: Flags = keys[at] == wanted
    return found


@dataclass
class States:
    """Consecutive states: `filled` has the complete state after each event.

    `told` has the rows that this window reports. The first row of the window may be only the
    predecessor of the next one, and the last row is reported later, once its end is known.
    """

    filled: pa.RecordBatch
    partition: Index
    partition_start: Index
    told: Index

    def column(self, name: str) -> pa.Array:
        """A column of `filled`: topic, topic_id, offset, timestamp, ..."""
        return self.filled.column(name)

    def lists(self, name: str) -> SortedLists:
        """A column of lists."""
        return SortedLists(self.column(name))

    @cached_property
    def isr(self) -> SortedLists:
        return self.lists("isr")

    @cached_property
    def replicas(self) -> SortedLists:
        return self.lists("replicas")

    @cached_property
    def isr_differs(self) -> Flags:
        """For each row, True if the ISR differs from that of the previous state."""
        return self.isr.differs() & self.has_previous

    @cached_property
    def replicas_differ(self) -> Flags:
        return self.replicas.differs() & self.has_previous

    @cached_property
    def leader(self) -> Index:
        """The leader of each row; UNKNOWN if no record has set it."""
        return numbers(self.column("leader"))

    @cached_property
    def has_previous(self) -> Flags:
        """For each row, True if the previous row is a state of the same partition."""
        return self.partition_start < np.arange(len(self.partition_start))

    @cached_property
    def has_next(self) -> Flags:
        """For each row, True if the next row is a state of the same partition."""
        return np.append(self.has_previous[1:], False)

    @cached_property
    def leader_differs(self) -> Flags:
        differs = self.has_previous.copy()
        differs[1:] &= self.leader[1:] != self.leader[:-1]
        return differs

    @cached_property
    def is_moving(self) -> Flags:
        """For each row, True if replicas are being added or removed."""
        counts = [
            pc.fill_null(pc.list_value_length(self.column(name)), 0).to_numpy(zero_copy_only=False)
            for name in ("adding_replicas", "removing_replicas")
        ]
        found: Flags = (counts[0] + counts[1]) > 0
        return found

    @cached_property
    def is_marked(self) -> Flags:
        """For each row, True if its record sets the partition to recovering."""
        found: Flags = self.column("is_recovering").to_numpy(zero_copy_only=False)
        return found

    @cached_property
    def is_unclean(self) -> Flags:
        """For each row, True if it starts with an unclean election.

        Kafka does not mark these below metadata.version 3.2 or if the partition is recovering
        already. An unmarked unclean leader was neither in sync nor eligible before, and is the only
        in-sync replica after. The same change at the end of a reassignment is clean, and also
        changes the replicas.
        """
        found = self.is_marked.copy()
        is_alone = self.leader_differs & self.isr_differs & (self.isr.lengths == 1)
        rows = np.flatnonzero(is_alone & ~self.replicas_differ & (self.leader >= 0))
        before, leader = rows - 1, self.leader[rows]
        eligible = self.lists("eligible_replicas")
        was_fit = self.isr.have(before, leader) | eligible.have(before, leader)
        is_known = self.isr.lengths[before] >= 0
        found[rows[is_known & ~was_fit & self.isr.have(rows, leader)]] = True
        return found

    def following(self, name: str, otherwise: str) -> pa.Array:
        """A column of the next state, or a column of the topic after the last state."""
        behind = np.minimum(np.arange(1, len(self.partition) + 1), len(self.partition) - 1)
        next_one = self.column(name).take(pa.array(behind))
        return pc.if_else(pa.array(self.has_next), next_one, self.column(otherwise))


def states_of(events: Iterable[pa.RecordBatch]) -> Iterator[States]:
    """Yield the states of partitions, one window at a time; each state is reported once.

    Events are sorted by topic_id, partition and offset, and have: topic_id, topic (a name, or
    null), removed_offset and removed (of the topic, or null), partition (TOPIC for an event of the
    topic), offset, timestamp, leader_epoch (of a PartitionRecord), raises_epoch, leader, replicas,
    isr, adding_replicas, removing_replicas, eligible_replicas, is_recovering (a change marks an
    unclean election). A field that an event does not set is null.
    """
    held: pa.RecordBatch | None = None
    first = 0
    for batch in events:
        if not batch.num_rows:
            continue
        window = _filled(batch if held is None else pa.concat_batches([held, batch]))
        last = len(window.partition) - 1
        window.told = _of_partitions(window, first, last)
        yield window
        # The state before the held one is needed to find what changed in it.
        first = int(window.partition_start[last] < last)
        held = window.filled.slice(last - first)
    if held is not None:
        window = _filled(held)
        window.told = _of_partitions(window, first, held.num_rows)
        yield window


def numbers(array: pa.Array) -> Index:
    """The numbers of an array, with UNKNOWN for null."""
    filled = pc.fill_null(pc.cast(array, pa.int64()), UNKNOWN)
    found: Index = filled.to_numpy(zero_copy_only=False)
    return found


def _of_partitions(window: States, first: int, last: int) -> Index:
    return first + np.flatnonzero(window.partition[first:last] != TOPIC)


def _filled(events: pa.RecordBatch) -> States:
    """Fill in the complete state after each event; `told` is still empty."""
    count = events.num_rows
    topic_ids = events.column("topic_id")
    partition = numbers(events.column("partition"))
    begins = np.ones(count, np.bool_)
    begins[1:] = pc.not_equal(topic_ids.slice(1), topic_ids.slice(0, count - 1)).to_numpy(
        zero_copy_only=False
    )
    topic_start = _latest(begins)
    begins[1:] |= partition[1:] != partition[:-1]
    partition_start = _latest(begins)
    columns: dict[str, Any] = dict(zip(events.schema.names, events.columns, strict=True))
    for names, start in ((_OF_TOPIC, topic_start), (_OF_PARTITION, partition_start)):
        for name in names:
            columns[name] = _last_known(columns[name], start)
    columns["leader_epoch"] = _epochs(events, partition_start)
    # The raises are included now, and this row may be processed again.
    columns["raises_epoch"] = pa.repeat(pa.scalar(value=False), count)
    filled = pa.RecordBatch.from_arrays(
        [columns[name] for name in events.schema.names], schema=events.schema
    )
    return States(filled, partition, partition_start, np.empty(0, np.int64))


def _latest(flags: Flags) -> Index:
    """For each row, the last row up to it with the flag; the first row has it."""
    return np.maximum.accumulate(np.where(flags, np.arange(len(flags)), 0))


def _known_at(array: pa.Array, start: Index) -> Index:
    """For each row, the last row from `start` up to it with a value; -1 if none has one."""
    is_known = array.is_valid().to_numpy(zero_copy_only=False)
    at = np.maximum.accumulate(np.where(is_known, np.arange(len(is_known)), -1))
    return np.where(at < start, -1, at)


def _last_known(array: pa.Array, start: Index) -> pa.Array:
    if array.null_count == len(array):
        return array
    at = _known_at(array, start)
    return array.take(pa.array(at, mask=at < 0))


def _epochs(events: pa.RecordBatch, start: Index) -> pa.Array:
    """The leader epochs: that of the last PartitionRecord, plus one per leader named since."""
    told = events.column("leader_epoch")
    at = _known_at(told, start)
    raises = events.column("raises_epoch").to_numpy(zero_copy_only=False).cumsum()
    epochs = numbers(told)[at] + raises - raises[at]
    return pa.array(epochs.astype(np.int32), told.type, mask=at < 0)
