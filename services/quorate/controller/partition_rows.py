"""Partitions as columns of integers: any number of rows in the order of their keys, immutable.

Two million partitions as objects would take gigabytes; as rows of numpy arrays they take some sixty
bytes each, and "whose leader is broker 7" is one comparison for all of them.

A key is the number of a topic and the id of one of its partitions. A row is int32: leader, leader
epoch, partition epoch, recovery state, number of replicas, number of in-sync replicas, then the
replicas and the in-sync replicas, each padded with -1 to the widest row. Log directories are few:
a row has an index into a list of them for each replica. What only reassignments and eligible
leader replicas need lies in a dictionary of the few rows that have it.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from quorate.controller.partitions import NO_LEADER, NO_SELDOM, Partition, Seldom, seldom_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from quorate.records.ids import DirectoryId, TopicId

PARTITION_ID_BITS: Final = 24
PARTITION_ID_MAX: Final = (1 << PARTITION_ID_BITS) - 1

_LEADER, _LEADER_EPOCH, _PARTITION_EPOCH, _RECOVERY, _REPLICAS, _ISR, FIXED = range(7)
_PADDING: Final = -1
# A list of directories that is longer than this, and than there are rows, is looked through.
_DIRECTORIES_KEPT: Final = 64
_UINT8: Final = np.dtype(np.uint8)

if TYPE_CHECKING:
    Rows: TypeAlias = npt.NDArray[np.int32]
    Bits: TypeAlias = npt.NDArray[np.bool_]
    Keys: TypeAlias = npt.NDArray[np.int64]
    Index: TypeAlias = npt.NDArray[np.intp]
    # Into the directories, of the smallest type that holds all of them.
    Places: TypeAlias = npt.NDArray[Any]


def key_of(number: int, partition_id: int) -> int:
    """Where a partition stands among all: behind those of topics with a lower number."""
    return number << PARTITION_ID_BITS | partition_id


class PartitionRows:
    """Rows of partitions; its arrays are read-only.

    `topic_ids` has one id for each run of rows of one topic. Rows are in the order of their keys
    unless somebody has joined them in another.
    """

    __slots__ = ("_directories", "_places", "_rows", "_seldom", "keys", "topic_ids", "width")

    def __init__(
        self,
        keys: Keys,
        topic_ids: tuple[TopicId, ...],
        rows: Rows,
        places: Places,
        directories: tuple[DirectoryId, ...],
        seldom: Mapping[int, Seldom],
    ) -> None:
        """`rows` and `places` have shapes (n, FIXED + 2 * width) and (n, width).

        `seldom` has those that are not empty, by key.
        """
        if len(directories) > max(len(keys), _DIRECTORIES_KEPT):
            places, directories = _without_unused(places, directories)
        self.keys = keys
        self.topic_ids = topic_ids
        self.width = places.shape[1]
        self._rows = rows
        self._places = places
        self._directories = directories
        self._seldom = seldom
        for array in (keys, rows, places):
            array.flags.writeable = False

    @classmethod
    def made(cls, entries: Sequence[tuple[int, TopicId, Partition]]) -> PartitionRows:
        """The rows of these partitions, whose keys ascend."""
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
            np.array(places, _place_type(len(known))).reshape(count, width),
            tuple(known),
            {key: each for key, _, p in entries if (each := seldom_of(p)) != NO_SELDOM},
        )

    @classmethod
    def joined(cls, parts: Sequence[PartitionRows]) -> PartitionRows:
        """All rows of these parts, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        width = max(part.width for part in parts)
        directories, moved = _unified([part._directories for part in parts])
        kind = _place_type(len(directories))
        seldom: dict[int, Seldom] = {}
        for part in parts:
            seldom.update(part._seldom)
        return cls(
            np.concatenate([part.keys for part in parts]),
            _joined_runs(parts),
            np.concatenate([_with_width(part._rows, width) for part in parts]),
            np.concatenate(
                [
                    _padded(_mapped(part._places, each, kind), width)
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
        return self._rows[:, _LEADER]

    @property
    def isr_sizes(self) -> Rows:
        """Shape (n,): how many replicas are in sync."""
        return self._rows[:, _ISR]

    @property
    def replicas(self) -> Rows:
        """Shape (n, width): the replicas, padded with -1."""
        return self._rows[:, FIXED : FIXED + self.width]

    @property
    def isr(self) -> Rows:
        """Shape (n, width): the in-sync replicas, padded with -1."""
        return self._rows[:, FIXED + self.width :]

    @property
    def partition_ids(self) -> Keys:
        """Shape (n,)."""
        return self.keys & PARTITION_ID_MAX

    @property
    def numbers(self) -> list[int]:
        """The numbers of the topics, one for each run."""
        numbers = self.keys >> PARTITION_ID_BITS
        found: list[int] = numbers[self._starts()].tolist()
        return found

    def _starts(self) -> Index:
        """Where the runs of rows of one topic begin."""
        numbers = self.keys >> PARTITION_ID_BITS
        changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        return np.concatenate([np.zeros(min(1, len(numbers)), np.intp), changes])

    @property
    def cells(self) -> int:
        """How many numbers there are, by which time and memory go."""
        return self._rows.size

    @property
    def directory_count(self) -> int:
        """How many directories are kept for these rows, some of which none may have any more."""
        return len(self._directories)

    def topics_at(self, rows: Index) -> list[TopicId]:
        """The ids of the topics of these rows."""
        runs = np.searchsorted(self._starts(), rows, side="right") - 1
        return [self.topic_ids[run] for run in runs.tolist()]

    def standing(self) -> tuple[int, int]:
        """How many partitions are offline, and how many imbalanced."""
        leaders = self.leaders
        first = self.replicas[:, 0] if self.width else NO_LEADER
        is_offline = leaders == NO_LEADER
        is_imbalanced = is_offline | (leaders != first)
        return int(np.count_nonzero(is_offline)), int(np.count_nonzero(is_imbalanced))

    # --- single rows ----------------------------------------------------------------------------

    def row_of(self, key: int) -> int | None:
        """The row of that key, None where there is none."""
        row = int(self.keys.searchsorted(key))
        return row if row < len(self.keys) and self.keys[row] == key else None

    def rows_between(self, low: int, high: int) -> tuple[int, int]:
        """From which row to which the keys from `low` to below `high` are."""
        start, stop = self.keys.searchsorted((low, high)).tolist()
        return start, stop

    def partition(self, row: int) -> Partition:
        """The partition in that row."""
        return self._partition(
            int(self.keys[row]), self._rows[row].tolist(), self._places[row].tolist()
        )

    def partitions(self) -> Iterator[tuple[int, Partition]]:
        """Every partition with its key."""
        rows, places = self._rows.tolist(), self._places.tolist()
        for key, values, indices in zip(self.keys.tolist(), rows, places, strict=True):
            yield key, self._partition(key, values, indices)

    def with_eligible(self, low: int, high: int | None) -> list[tuple[TopicId, int, Partition]]:
        """Those that have eligible leader replicas, or had some, with their topics and keys.

        Only those whose keys are from `low` to below `high`.
        """
        keys = sorted(
            key
            for key, seldom in self._seldom.items()
            if (seldom.eligible_leader_replicas or seldom.last_known_elr)
            and low <= key
            and (high is None or key < high)
        )
        rows = self.keys.searchsorted(keys)
        places = zip(self.topics_at(rows), keys, rows.tolist(), strict=True)
        return [(topic_id, key, self.partition(row)) for topic_id, key, row in places]

    def named(self) -> Iterator[tuple[TopicId, int, Partition]]:
        """The same with their topics and ids."""
        rows = np.arange(len(self))
        for topic_id, (key, partition) in zip(self.topics_at(rows), self.partitions(), strict=True):
            yield topic_id, key & PARTITION_ID_MAX, partition

    def _partition(self, key: int, values: list[int], places: list[int]) -> Partition:
        replicas = values[_REPLICAS]
        isr_start = FIXED + self.width
        seldom = self._seldom.get(key, NO_SELDOM)
        directories = self._directories
        return Partition(
            replicas=tuple(values[FIXED : FIXED + replicas]),
            isr=tuple(values[isr_start : isr_start + values[_ISR]]),
            leader=values[_LEADER],
            leader_epoch=values[_LEADER_EPOCH],
            partition_epoch=values[_PARTITION_EPOCH],
            leader_recovery_state=values[_RECOVERY],
            directories=tuple([directories[place] for place in places[:replicas]]),
            removing_replicas=seldom.removing_replicas,
            adding_replicas=seldom.adding_replicas,
            eligible_leader_replicas=seldom.eligible_leader_replicas,
            last_known_elr=seldom.last_known_elr,
        )

    # --- others made of these --------------------------------------------------------------------

    def view(self, start: int, stop: int) -> PartitionRows:
        """Some neighbouring rows, for as long as all of these are held anyway."""
        if start == 0 and stop == len(self):
            return self
        ids, keys = self.topic_ids, self.keys[start:stop]
        if len(ids) > 1 and start < stop:
            first, last = self._starts().searchsorted((start, stop - 1), side="right").tolist()
            ids = ids[first - 1 : last]
        return PartitionRows(
            keys,
            ids if start < stop else (),
            self._rows[start:stop],
            self._places[start:stop],
            self._directories,
            self._seldom_among(keys),
        )

    def part(self, start: int, stop: int) -> PartitionRows:
        """The same rows on their own: nothing else is kept for them."""
        if start == 0 and stop == len(self):
            return self
        view = self.view(start, stop)
        # A very wide row may have been beside them.
        width = int(view._rows[:, _REPLICAS : _ISR + 1].max(initial=0))
        return PartitionRows(
            view.keys.copy(),
            view.topic_ids,
            _with_width(view._rows, width) if width < self.width else view._rows.copy(),
            view._places[:, :width].copy(),
            view._directories,
            view._seldom,
        )

    def _seldom_among(self, keys: Keys) -> Mapping[int, Seldom]:
        if not self._seldom or not len(keys):
            return {}
        low, high = int(keys[0]), int(keys[-1])
        return {key: each for key, each in self._seldom.items() if low <= key <= high}

    def with_rows(self, other: PartitionRows) -> PartitionRows:
        """These rows with others put between them; of two with one key the other's stays."""
        if not len(self) or other.keys[0] > self.keys[-1]:
            return PartitionRows.joined([part for part in (self, other) if len(part)])
        at = self.keys.searchsorted(other.keys)
        if at[-1] < len(self) and (self.keys[at] == other.keys).all():
            return self._replaced(at, other)
        both = PartitionRows.joined((self, other))
        order = np.argsort(both.keys, kind="stable")
        keys = both.keys[order]
        is_last = np.append(keys[1:] != keys[:-1], [True])
        order, keys = order[is_last], keys[is_last]
        topic_ids = dict(zip(both.numbers, both.topic_ids, strict=True))
        numbers = np.unique(keys >> PARTITION_ID_BITS).tolist()
        return PartitionRows(
            keys,
            tuple([topic_ids[number] for number in numbers]),
            both._rows[order],
            both._places[order],
            both._directories,
            self._seldom_with(other),
        )

    def _replaced(self, at: Index, other: PartitionRows) -> PartitionRows:
        width = max(self.width, other.width)
        directories, (mine, theirs) = _unified([self._directories, other._directories])
        kind = _place_type(len(directories))
        rows = _with_width(self._rows, width)
        rows = rows.copy() if rows is self._rows else rows
        rows[at] = _with_width(other._rows, width)
        places = _padded(_mapped(self._places, mine, kind), width)
        places = places.copy() if places is self._places else places
        places[at] = _padded(_mapped(other._places, theirs, kind), width)
        seldom = self._seldom_with(other)
        return PartitionRows(self.keys, self.topic_ids, rows, places, directories, seldom)

    def _seldom_with(self, other: PartitionRows) -> Mapping[int, Seldom]:
        if not self._seldom:
            return other._seldom
        replaced = set(other.keys.tolist())
        kept = {key: each for key, each in self._seldom.items() if key not in replaced}
        return {**kept, **other._seldom}


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


def _joined_runs(parts: Sequence[PartitionRows]) -> tuple[TopicId, ...]:
    """One id for each run of rows of one topic; the last of one part may go on in the next."""
    found: list[TopicId] = []
    for part in parts:
        ids = part.topic_ids
        found += ids[1:] if found and ids and found[-1] == ids[0] else ids
    return tuple(found)


def _with_width(rows: Rows, width: int) -> Rows:
    """The rows laid out for lists of up to `width`; the same array when they are already."""
    old = (rows.shape[1] - FIXED) // 2
    if old == width:
        return rows
    kept = min(old, width)
    result = np.full((len(rows), FIXED + 2 * width), _PADDING, dtype=np.int32)
    result[:, : FIXED + kept] = rows[:, : FIXED + kept]
    isr = rows[:, FIXED + old : FIXED + old + kept]
    result[:, FIXED + width : FIXED + width + kept] = isr
    return result


def _padded(places: Places, width: int) -> Places:
    """The places of up to `width` replicas; the same array when they are already."""
    if places.shape[1] == width:
        return places
    result = np.zeros((len(places), width), places.dtype)
    result[:, : places.shape[1]] = places
    return result


def _place_type(count: int) -> npt.DTypeLike:
    return _UINT8 if count <= 256 else np.min_scalar_type(count - 1)


def _mapped(places: Places, moved: Sequence[int] | None, kind: npt.DTypeLike) -> Places:
    """Places in a list of directories as those in another one."""
    if moved is None:
        return places if places.dtype == kind else places.astype(kind)
    # Where a list is empty there are only padded places, which are 0.
    return np.array(moved or [0], kind).take(places)


def _without_unused(
    places: Places, directories: tuple[DirectoryId, ...]
) -> tuple[Places, tuple[DirectoryId, ...]]:
    """Only the directories that are in some place, where those are few of all."""
    used, inverse = np.unique(places, return_inverse=True)
    if 2 * len(used) > len(directories):
        return places, directories
    kept = tuple([directories[place] for place in used.tolist()])
    return inverse.reshape(places.shape).astype(_place_type(len(kept))), kept


def _unified(
    tables: Sequence[tuple[DirectoryId, ...]],
) -> tuple[tuple[DirectoryId, ...], list[Sequence[int] | None]]:
    """One list of directories for several, and where each one's are in it; None for unmoved."""
    first = tables[0]
    if all(table is first for table in tables):
        return first, [None] * len(tables)
    known = {directory: place for place, directory in enumerate(first)}
    moved: list[Sequence[int] | None] = []
    found: dict[int, Sequence[int] | None] = {id(first): None}
    for table in tables:
        if id(table) not in found:
            found[id(table)] = [known.setdefault(each, len(known)) for each in table]
        moved.append(found[id(table)])
    return tuple(known), moved
