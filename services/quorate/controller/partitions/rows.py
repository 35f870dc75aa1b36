"""Immutable rows of partitions as numpy columns, ordered by key.

Two million partitions as objects would take gigabytes; as rows of numpy arrays they take about
sixty bytes each, and finding all partitions that broker 7 leads is one vectorized comparison.

A key consists of the number of a topic and the id of one of its partitions. A row is int32: leader,
leader epoch, partition epoch, recovery state, number of replicas, number of in-sync replicas, then
the replicas and the in-sync replicas, each padded with -1 to the widest row. There are few log
directories: a row has an index into a list of them for each replica. Fields that only reassignments
and eligible leader replicas need are in a dictionary of the few rows that have them.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from quorate.controller.partitions.directory_index import (
    KEPT_MAX,
    index_dtype,
    merge_tables,
    remap,
    without_unused,
)
from quorate.controller.partitions.partition import (
    NO_LEADER,
    NO_SELDOM,
    Partition,
    RareFields,
    rare_fields_of,
)
from quorate.records.ids import UUID_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from quorate.controller.partitions.directory_index import Places
    from quorate.records.ids import DirectoryId, TopicId

PARTITION_ID_BITS: Final = 24
PARTITION_ID_MAX: Final = (1 << PARTITION_ID_BITS) - 1

LEADER, LEADER_EPOCH, PARTITION_EPOCH, RECOVERY, REPLICAS, ISR, FIXED = range(7)
_PADDING: Final = -1
_ZERO: Final = np.zeros(1, np.intp)
_EPOCH_MAX: Final = np.iinfo(np.int32).max

if TYPE_CHECKING:
    Rows: TypeAlias = npt.NDArray[np.int32]
    Bits: TypeAlias = npt.NDArray[np.bool_]
    Keys: TypeAlias = npt.NDArray[np.int64]
    Index: TypeAlias = npt.NDArray[np.intp]


def key_of(number: int, partition_id: int) -> int:
    """The key of a partition; keys are ordered by topic number, then by partition id."""
    return number << PARTITION_ID_BITS | partition_id


class Columns(NamedTuple):
    """The columns of `PartitionRows.values`: shapes (n, FIXED), (n, width) and (n, width)."""

    fixed: Rows
    replicas: Rows
    isr: Rows


class PartitionRows:
    """Rows of partitions with read-only arrays.

    `topic_ids` has one id for each run of rows of one topic. Rows are in key order unless a caller
    has joined them in another order.
    """

    __slots__ = ("directories", "keys", "places", "seldom", "topic_ids", "values", "width")

    def __init__(
        self,
        keys: Keys,
        topic_ids: tuple[TopicId, ...],
        values: Rows,
        places: Places,
        directories: tuple[DirectoryId, ...],
        seldom: Mapping[int, RareFields],
    ) -> None:
        """`values` and `places` have shapes (n, FIXED + 2 * width) and (n, width).

        `seldom` has only entries that are not empty, by key.
        """
        if len(directories) > max(len(keys), KEPT_MAX):
            places, directories = without_unused(places, directories)
        self.keys = keys
        self.topic_ids = topic_ids
        self.width = places.shape[1]
        self.values = values
        self.places = places
        self.directories = directories
        self.seldom = seldom
        for array in (keys, values, places):
            array.flags.writeable = False

    @classmethod
    def made(cls, entries: Sequence[tuple[int, TopicId, Partition]]) -> PartitionRows:
        """The rows of these partitions, which are in key order."""
        partitions = [partition for _, _, partition in entries]
        width = max([max(len(p.replicas), len(p.isr)) for p in partitions], default=0)
        known: dict[DirectoryId, int] = {}
        rows = [_row(partition, width) for partition in partitions]
        places = [
            [known.setdefault(directory, len(known)) for directory in p.directories]
            + [0] * (width - len(p.directories))
            for p in partitions
        ]
        count = len(entries)
        return cls(
            np.array([key for key, _, _ in entries], np.int64),
            tuple([topic_id for topic_id, _ in groupby([topic_id for _, topic_id, _ in entries])]),
            np.array(rows, np.int32).reshape(count, FIXED + 2 * width),
            np.array(places, index_dtype(len(known))).reshape(count, width),
            tuple(known),
            {key: each for key, _, p in entries if (each := rare_fields_of(p)) != NO_SELDOM},
        )

    @classmethod
    def of_columns(
        cls,
        keys: Keys,
        topic_ids: tuple[TopicId, ...],
        columns: Columns,
        directories: tuple[Places, tuple[DirectoryId, ...]],
        seldom: Mapping[int, RareFields],
    ) -> PartitionRows:
        """Rows from columns; `directories` are the indexes and the list that they refer to."""
        values = np.concatenate([columns.fixed, columns.replicas, columns.isr], axis=1)
        return cls(keys, topic_ids, values, *directories, seldom)

    @classmethod
    def joined(cls, parts: Sequence[PartitionRows]) -> PartitionRows:
        """The concatenated rows of these parts."""
        if len(parts) == 1:
            return parts[0]
        width = max(part.width for part in parts)
        directories, moved = merge_tables([part.directories for part in parts])
        kind = index_dtype(len(directories))
        seldom: dict[int, RareFields] = {}
        for part in parts:
            seldom.update(part.seldom)
        return cls(
            np.concatenate([part.keys for part in parts]),
            _joined_runs(parts),
            np.concatenate([with_width(part.values, width) for part in parts]),
            np.concatenate(
                [
                    padded(remap(part.places, each, kind), width)
                    for part, each in zip(parts, moved, strict=True)
                ]
            ),
            directories,
            seldom,
        )

    def __len__(self) -> int:
        return len(self.keys)

    # --- columns ------------------------------------------------------------------------------

    @property
    def leaders(self) -> Rows:
        """Shape (n,): the leader of each partition, -1 for none."""
        return self.values[:, LEADER]

    @property
    def leader_epochs(self) -> Rows:
        """Shape (n,)."""
        return self.values[:, LEADER_EPOCH]

    @property
    def isr_sizes(self) -> Rows:
        """Shape (n,): the number of replicas in sync."""
        return self.values[:, ISR]

    @property
    def replicas(self) -> Rows:
        """Shape (n, width): the replicas, padded with -1."""
        return self.values[:, FIXED : FIXED + self.width]

    @property
    def isr(self) -> Rows:
        """Shape (n, width): the in-sync replicas, padded with -1."""
        return self.values[:, FIXED + self.width :]

    @property
    def partition_ids(self) -> Keys:
        """Shape (n,)."""
        return self.keys & PARTITION_ID_MAX

    @property
    def numbers(self) -> list[int]:
        """The numbers of the topics, one for each run."""
        found: list[int] = (self.keys[self._starts()] >> PARTITION_ID_BITS).tolist()
        return found

    def _starts(self) -> Index:
        """Starts of the runs of rows of one topic."""
        if len(self.topic_ids) == 1:
            return _ZERO
        return _starts(self.keys >> PARTITION_ID_BITS)

    @property
    def cell_count(self) -> int:
        """Number of cells, a measure of time and memory."""
        return self.values.size

    @property
    def topics(self) -> npt.NDArray[np.uint8]:
        """Shape (n, 16): the id of the topic of each row."""
        ids = np.frombuffer(b"".join(self.topic_ids), np.uint8).reshape(-1, UUID_BYTES)
        sizes = np.diff(np.append(self._starts(), len(self)))
        return np.repeat(ids, sizes, axis=0)

    def topics_at(self, rows: Index) -> list[TopicId]:
        """The ids of the topics of these rows."""
        runs = np.searchsorted(self._starts(), rows, side="right") - 1
        return [self.topic_ids[run] for run in runs.tolist()]

    @property
    def has_eligible(self) -> Bits:
        """Shape (n,): true for rows with eligible or last known eligible leader replicas."""
        keys = [
            key
            for key, each in self.seldom.items()
            if each.eligible_leader_replicas or each.last_known_elr
        ]
        return np.isin(self.keys, keys)

    @property
    def has_last_epoch(self) -> Bits:
        """Shape (n,): true for rows whose partition or leader epoch has the maximum value."""
        epochs = self.values[:, LEADER_EPOCH : PARTITION_EPOCH + 1]
        found: Bits = (epochs == _EPOCH_MAX).any(axis=1)
        return found

    def offline_and_imbalanced_counts(self) -> tuple[int, int]:
        """Numbers of offline and of imbalanced partitions."""
        leaders = self.leaders
        first = self.replicas[:, 0] if self.width else NO_LEADER
        is_offline = leaders == NO_LEADER
        is_imbalanced = is_offline | (leaders != first)
        return int(np.count_nonzero(is_offline)), int(np.count_nonzero(is_imbalanced))

    # --- single rows ----------------------------------------------------------------------------

    def row_of(self, key: int) -> int | None:
        """The row of that key, None without one."""
        row = int(self.keys.searchsorted(key))
        return row if row < len(self.keys) and self.keys[row] == key else None

    def rows_between(self, low: int, high: int) -> tuple[int, int]:
        """First row and end of the rows with keys from `low` to below `high`."""
        # Two separate calls: making an array of the two would take longer.
        return int(self.keys.searchsorted(low)), int(self.keys.searchsorted(high))

    def partition(self, row: int) -> Partition:
        """The partition in that row."""
        return self._partition(
            int(self.keys[row]), self.values[row].tolist(), self.places[row].tolist()
        )

    def partitions(self) -> Iterator[tuple[int, Partition]]:
        """Every partition with its key."""
        rows, places = self.values.tolist(), self.places.tolist()
        for key, values, indices in zip(self.keys.tolist(), rows, places, strict=True):
            yield key, self._partition(key, values, indices)

    def _partition(self, key: int, values: list[int], places: list[int]) -> Partition:
        replicas = values[REPLICAS]
        isr_start = FIXED + self.width
        seldom = self.seldom.get(key, NO_SELDOM)
        directories = self.directories
        return Partition(
            replicas=tuple(values[FIXED : FIXED + replicas]),
            isr=tuple(values[isr_start : isr_start + values[ISR]]),
            leader=values[LEADER],
            leader_epoch=values[LEADER_EPOCH],
            partition_epoch=values[PARTITION_EPOCH],
            leader_recovery_state=values[RECOVERY],
            directories=tuple([directories[place] for place in places[:replicas]]),
            removing_replicas=seldom.removing_replicas,
            adding_replicas=seldom.adding_replicas,
            eligible_leader_replicas=seldom.eligible_leader_replicas,
            last_known_elr=seldom.last_known_elr,
        )

    # --- derived rows ----------------------------------------------------------------------------

    def view(self, start: int, stop: int) -> PartitionRows:
        """Some consecutive rows as a view, which keeps all of these in memory."""
        if start == 0 and stop == len(self):
            return self
        ids, keys = self.topic_ids, self.keys[start:stop]
        if len(ids) > 1 and start < stop:
            first, last = self._starts().searchsorted((start, stop - 1), side="right").tolist()
            ids = ids[first - 1 : last]
        return PartitionRows(
            keys,
            ids if start < stop else (),
            self.values[start:stop],
            self.places[start:stop],
            self.directories,
            self._seldom_among(keys),
        )

    def topic_view(self, start: int, stop: int, topic_id: TopicId) -> PartitionRows:
        """The same for one or more rows that all belong to that topic."""
        if start == 0 and stop == len(self):
            return self
        # Skips all other work, because many topics have one row.
        view = object.__new__(PartitionRows)
        view.keys = keys = self.keys[start:stop]
        view.values, view.places = self.values[start:stop], self.places[start:stop]
        view.topic_ids, view.width = (topic_id,), self.width
        view.directories = self.directories
        view.seldom = self._seldom_among(keys) if self.seldom else self.seldom
        return view

    def copied(self, start: int, stop: int) -> PartitionRows:
        """Some consecutive rows as a copy, which keeps nothing else in memory."""
        if start == 0 and stop == len(self):
            return self
        view = self.view(start, stop)
        # The widest row may not be among them.
        width = int(view.values[:, REPLICAS : ISR + 1].max(initial=0))
        return PartitionRows(
            view.keys.copy(),
            view.topic_ids,
            with_width(view.values, width) if width < self.width else view.values.copy(),
            view.places[:, :width].copy(),
            view.directories,
            view.seldom,
        )

    def _seldom_among(self, keys: Keys) -> Mapping[int, RareFields]:
        if not self.seldom or not len(keys):
            return {}
        low, high = int(keys[0]), int(keys[-1])
        return {key: each for key, each in self.seldom.items() if low <= key <= high}

    def taken(self, index: Index) -> PartitionRows:
        """The rows at these positions, in that order."""
        keys = self.keys[index]
        topic_ids = self.topic_ids
        if len(topic_ids) > 1:
            runs = self._starts().searchsorted(index, side="right") - 1
            found = [topic_ids[run] for run in runs[_starts(runs)].tolist()]
            topic_ids = tuple([topic_id for topic_id, _ in groupby(found)])
        chosen = set(keys.tolist()) if self.seldom else ()
        return PartitionRows(
            keys,
            topic_ids if len(keys) else (),
            self.values[index],
            self.places[index],
            self.directories,
            {key: each for key, each in self.seldom.items() if key in chosen},
        )


def _row(partition: Partition, width: int) -> list[int]:
    replicas, isr = partition.replicas, partition.isr
    return [
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.leader_recovery_state,
        len(replicas),
        len(isr),
        *replicas,
        *[_PADDING] * (width - len(replicas)),
        *isr,
        *[_PADDING] * (width - len(isr)),
    ]


def _starts(numbers: Keys) -> Index:
    """Starts of runs of equal numbers."""
    is_start = np.empty(len(numbers), np.bool_)
    is_start[:1] = True
    np.not_equal(numbers[1:], numbers[:-1], out=is_start[1:])
    return is_start.nonzero()[0]


def _joined_runs(parts: Sequence[PartitionRows]) -> tuple[TopicId, ...]:
    """One id for each run of rows of one topic; a run may extend over several parts."""
    found: list[TopicId] = []
    for part in parts:
        ids = part.topic_ids
        found += ids[1:] if found and ids and found[-1] == ids[0] else ids
    return tuple(found)


def with_number(rows: PartitionRows, number: int) -> PartitionRows:
    """The rows with topic numbers that start at `number` instead of 0."""
    keys = rows.keys + (number << PARTITION_ID_BITS)
    return PartitionRows(
        keys, rows.topic_ids, rows.values, rows.places, rows.directories, rows.seldom
    )


def with_width(rows: Rows, width: int) -> Rows:
    """The rows laid out for lists of up to `width`; the same array if they already are."""
    old = (rows.shape[1] - FIXED) // 2
    if old == width:
        return rows
    kept = min(old, width)
    result = np.full((len(rows), FIXED + 2 * width), _PADDING, dtype=np.int32)
    result[:, : FIXED + kept] = rows[:, : FIXED + kept]
    isr = rows[:, FIXED + old : FIXED + old + kept]
    result[:, FIXED + width : FIXED + width + kept] = isr
    return result


def padded(places: Places, width: int) -> Places:
    """The directory indexes padded to `width` replicas; the same array if they already are."""
    if places.shape[1] == width:
        return places
    result = np.zeros((len(places), width), places.dtype)
    result[:, : places.shape[1]] = places
    return result
