"""The partitions of one topic as columns of integers: immutable, shared where unchanged.

Two million partitions as objects would take gigabytes; as rows of numpy arrays they take about a
hundred bytes each, and "whose leader is broker 7" is one comparison a chunk. A table is a tuple of
chunks of up to CHUNK_ROWS rows; a change copies the chunks it touches and nothing else.

A row is int32: leader, leader epoch, partition epoch, recovery state, number of replicas, number of
in-sync replicas, then the replicas and the in-sync replicas, each padded with -1 to the widest row
of the chunk. A row of -1 is a partition that does not exist. Log directories lie beside it as
bytes, absent while all are UNASSIGNED; what only reassignments and eligible leader replicas need
lies in a dictionary of the few rows that have it.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from quorate.records.ids import UUID_BYTES, ZERO_UUID, DirectoryId
from quorate.records.value import named_value, value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

CHUNK_ROWS: Final = 1024
NO_LEADER: Final = -1
RECOVERED: Final = 0
RECOVERING: Final = 1

UNASSIGNED_DIR: Final = DirectoryId(ZERO_UUID)
LOST_DIR: Final = DirectoryId(bytes(15) + b"\x01")
MIGRATING_DIR: Final = DirectoryId(bytes(15) + b"\x02")

_LEADER, _LEADER_EPOCH, _PARTITION_EPOCH, _RECOVERY, _REPLICAS, _ISR, _FIXED = range(7)

if TYPE_CHECKING:
    Rows: TypeAlias = npt.NDArray[np.int32]
    Bits: TypeAlias = npt.NDArray[np.bool_]


@named_value
class Partition:
    """One partition's state, as PartitionRecord has it; `directories` go with `replicas`."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    directories: tuple[DirectoryId, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_imbalanced(self) -> bool:
        """Whether another than the first replica leads, or none."""
        return self.replicas[:1] != (self.leader,)


@value
class Tally:
    """How partitions stand, counted as they change.

    `offline` have no leader; `imbalanced` are those and others that their first replica does not
    lead. Elections are those since this process began to replay: `unclean` ones may lose data,
    `eligible` ones are won by a replica that was out of sync and lacks nothing. `replaced` are the
    topics and configurations that later ones took the place of, or nothing: what only earlier
    images hold.
    """

    offline: int = 0
    imbalanced: int = 0
    unclean: int = field(default=0, compare=False)
    eligible: int = field(default=0, compare=False)
    replaced: int = field(default=0, compare=False)


@value
class _Seldom:
    """The fields of a partition that are empty nearly always."""

    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


_NOTHING: Final = _Seldom()


class Chunk:
    """Up to CHUNK_ROWS partitions with neighbouring ids; its arrays are read-only."""

    __slots__ = ("_directories", "_rows", "_seldom", "_width")

    def __init__(
        self, rows: Rows, directories: npt.NDArray[np.uint8] | None, seldom: dict[int, _Seldom]
    ) -> None:
        width = max(int(rows[:, _REPLICAS : _ISR + 1].max(initial=0)), 0)
        self._rows = _with_width(rows, width)
        self._rows.flags.writeable = False
        if directories is not None:
            directories = directories[:, : width * UUID_BYTES].copy() if directories.any() else None
        self._directories = directories
        self._seldom = seldom
        self._width = width

    @classmethod
    def joined(cls, chunks: Sequence[Chunk]) -> Chunk:
        """The rows of chunks of one width in one, to be looked at as columns only."""
        return (
            chunks[0]
            if len(chunks) == 1
            else cls(np.concatenate([chunk._rows for chunk in chunks]), None, {})
        )

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chunk):
            return NotImplemented
        return (
            self._seldom == other._seldom
            and np.array_equal(self._rows, other._rows)
            and _equal_directories(self._directories, other._directories)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def width(self) -> int:
        """How many replicas, or replicas in sync, the widest row has."""
        return self._width

    @property
    def leaders(self) -> Rows:
        """Shape (rows,): the leader of each partition, -1 for none."""
        return self._rows[:, _LEADER]

    @property
    def isr_sizes(self) -> Rows:
        """Shape (rows,): how many replicas are in sync."""
        return self._rows[:, _ISR]

    @property
    def replicas(self) -> Rows:
        """Shape (rows, width): the replicas, padded with -1."""
        return self._rows[:, _FIXED : _FIXED + self._width]

    @property
    def isr(self) -> Rows:
        """Shape (rows, width): the in-sync replicas, padded with -1."""
        return self._rows[:, _FIXED + self._width :]

    @property
    def present(self) -> Bits:
        """Shape (rows,): which partitions exist."""
        return self._rows[:, _REPLICAS] >= 0

    @property
    def eligible(self) -> dict[int, tuple[int, ...]]:
        """The eligible leader replicas of those rows that have any."""
        return {
            row: seldom.eligible_leader_replicas
            for row, seldom in self._seldom.items()
            if seldom.eligible_leader_replicas or seldom.last_known_elr
        }

    def has(self, row: int) -> bool:
        """Whether there is a partition in that row."""
        return row < len(self._rows) and bool(self._rows[row, _REPLICAS] >= 0)

    def get(self, row: int) -> Partition | None:
        """The partition in that row, or None where there is none."""
        if row >= len(self._rows):
            return None
        return self._partition(row, self._rows[row].tolist())

    def items(self) -> Iterator[tuple[int, Partition]]:
        """Every partition with its row, in order."""
        for row, values in enumerate(self._rows.tolist()):
            partition = self._partition(row, values)
            if partition is not None:
                yield row, partition

    def _partition(self, row: int, values: list[int]) -> Partition | None:
        replicas = values[_REPLICAS]
        if replicas < 0:
            return None
        isr_start = _FIXED + self._width
        seldom = self._seldom.get(row, _NOTHING)
        return Partition(
            replicas=tuple(values[_FIXED : _FIXED + replicas]),
            isr=tuple(values[isr_start : isr_start + values[_ISR]]),
            leader=values[_LEADER],
            leader_epoch=values[_LEADER_EPOCH],
            partition_epoch=values[_PARTITION_EPOCH],
            leader_recovery_state=values[_RECOVERY],
            directories=self._row_directories(row, replicas),
            removing_replicas=seldom.removing_replicas,
            adding_replicas=seldom.adding_replicas,
            eligible_leader_replicas=seldom.eligible_leader_replicas,
            last_known_elr=seldom.last_known_elr,
        )

    def _row_directories(self, row: int, count: int) -> tuple[DirectoryId, ...]:
        if self._directories is None:
            return (UNASSIGNED_DIR,) * count
        data = self._directories[row].tobytes()
        return tuple(DirectoryId(data[i * UUID_BYTES : (i + 1) * UUID_BYTES]) for i in range(count))

    @classmethod
    def made(cls, partitions: Sequence[Partition]) -> Chunk:
        """The chunk of a new topic: no row is missing, and none was there before.

        Most topics are created with a few partitions, for which arrays that are filled field by
        field cost ten times as much as this.
        """
        width = max(max(len(p.replicas), len(p.isr)) for p in partitions)
        rows = np.array([_row(partition, width) for partition in partitions], dtype=np.int32)
        rows.flags.writeable = False
        size = width * UUID_BYTES
        data = b"".join([b"".join(p.directories).ljust(size, b"\0") for p in partitions])
        chunk = cls.__new__(cls)
        chunk._rows = rows
        chunk._directories = (
            np.frombuffer(data, np.uint8).reshape(len(partitions), size)
            if data.count(0) < len(data)
            else None
        )
        chunk._seldom = {
            row: fields for row, p in enumerate(partitions) if (fields := _seldom(p)) != _NOTHING
        }
        chunk._width = width
        return chunk

    def with_changes(self, changes: dict[int, Partition]) -> Chunk:
        """This chunk with those rows replaced, and grown to hold the last of them."""
        if not len(self._rows) and len(changes) == max(changes) + 1:
            return Chunk.made([changes[row] for row in range(len(changes))])
        width = max(self._width, *(max(len(p.replicas), len(p.isr)) for p in changes.values()))
        size = max(len(self._rows), max(changes) + 1)
        rows = np.full((size, _FIXED + 2 * width), -1, dtype=np.int32)
        rows[: len(self._rows)] = _with_width(self._rows, width)
        directories = np.zeros((size, width * UUID_BYTES), dtype=np.uint8)
        if self._directories is not None:
            directories[: len(self._rows), : self._directories.shape[1]] = self._directories
        where = list(changes)
        rows[where] = [_row(partition, width) for partition in changes.values()]
        seldom = dict(self._seldom)
        for row, partition in changes.items():
            joined = b"".join(partition.directories)
            directories[row] = np.frombuffer(joined.ljust(width * UUID_BYTES, b"\0"), np.uint8)
            fields = _seldom(partition)
            if fields == _NOTHING:
                seldom.pop(row, None)
            else:
                seldom[row] = fields
        return Chunk(rows, directories, seldom)


class PartitionTable:
    """The partitions of a topic by id; `len()` is how many exist. Never changes."""

    __slots__ = ("_chunks", "_count")

    def __init__(self, chunks: tuple[Chunk, ...] = (), count: int = 0) -> None:
        self._chunks = chunks
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionTable):
            return NotImplemented
        return self._count == other._count and self._chunks == other._chunks

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PartitionTable({dict(self.items())!r})"

    def get(self, partition_id: int) -> Partition | None:
        """The partition of that id, or None when there is none."""
        chunk, row = divmod(partition_id, CHUNK_ROWS)
        if not 0 <= chunk < len(self._chunks):
            return None
        return self._chunks[chunk].get(row)

    def pick(self, partition_ids: Iterable[int]) -> Iterator[tuple[int, Partition]]:
        """Those of the partitions that exist, with their ids."""
        for partition_id in partition_ids:
            partition = self.get(partition_id)
            if partition is not None:
                yield partition_id, partition

    def items(self) -> Iterator[tuple[int, Partition]]:
        """Every partition with its id, in order of the ids."""
        for number, chunk in enumerate(self._chunks):
            for row, partition in chunk.items():
                yield number * CHUNK_ROWS + row, partition

    def items_from(self, first: int) -> Iterator[tuple[int, Partition]]:
        """The same from that id on."""
        start = max(0, first) // CHUNK_ROWS
        for number, chunk in enumerate(self._chunks[start:], start):
            for row, partition in chunk.items():
                partition_id = number * CHUNK_ROWS + row
                if partition_id >= first:
                    yield partition_id, partition

    def select(self, condition: Callable[[Chunk], Bits]) -> list[int]:
        """The ids of the partitions for which `condition` holds, in order.

        It gets a chunk and answers with one bit a row, so that a scan costs a few vector
        operations and not a call for each partition.
        """
        found: list[int] = []
        for begin, chunk in self.chunks_from(0):
            found.extend((np.flatnonzero(condition(chunk)) + begin).tolist())
        return found

    def standing(self) -> tuple[int, int]:
        """How many partitions are offline, and how many imbalanced."""
        offline = imbalanced = 0
        for chunk in self._chunks:
            present, leaders = chunk.present, chunk.leaders
            first = chunk.replicas[:, 0] if chunk.width else NO_LEADER
            is_offline = present & (leaders == NO_LEADER)
            offline += int(np.count_nonzero(is_offline))
            imbalanced += int(np.count_nonzero(is_offline | (present & (leaders != first))))
        return offline, imbalanced

    def chunks_from(self, partition_id: int) -> Iterator[tuple[int, Chunk]]:
        """The chunks from that of a partition on, each with the id of its first partition."""
        for number in range(partition_id // CHUNK_ROWS, len(self._chunks)):
            yield number * CHUNK_ROWS, self._chunks[number]

    def with_changes(self, changes: Mapping[int, Partition]) -> PartitionTable:
        """This table with those partitions added or replaced."""
        by_chunk: dict[int, dict[int, Partition]] = {}
        for partition_id, partition in changes.items():
            number, row = divmod(partition_id, CHUNK_ROWS)
            by_chunk.setdefault(number, {})[row] = partition
        chunks = list(self._chunks)
        count = self._count
        for number, rows in sorted(by_chunk.items()):
            chunks.extend([_EMPTY_CHUNK] * (number + 1 - len(chunks)))
            old = chunks[number]
            chunks[number] = old.with_changes(rows)
            count += sum(not old.has(row) for row in rows)
        return PartitionTable(tuple(chunks), count)


def select_rows(
    chunks: Sequence[Chunk], condition: Callable[[Chunk], Bits]
) -> list[tuple[int, int]]:
    """Where `condition` holds: places in `chunks` and rows there, in order.

    It gets rows of many chunks as if they were one, and answers with one bit for each, so that
    thousands of small topics cost a few vector operations and not a few for each.
    """
    by_width: dict[int, list[int]] = {}
    for index, chunk in enumerate(chunks):
        by_width.setdefault(chunk.width, []).append(index)
    found: list[tuple[int, int]] = []
    for indices in by_width.values():
        joined = Chunk.joined([chunks[index] for index in indices])
        hits = np.flatnonzero(condition(joined))
        if hits.size:
            ends = np.cumsum([len(chunks[index]) for index in indices])
            which = np.searchsorted(ends, hits, side="right")
            begins = ends - np.array([len(chunks[index]) for index in indices])
            rows = hits - begins[which]
            places = zip(which.tolist(), rows.tolist(), strict=True)
            found.extend((indices[place], row) for place, row in places)
    found.sort()
    return found


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
        *[-1] * (width - len(replicas)),
        *isr,
        *[-1] * (width - len(isr)),
    ]


def _seldom(partition: Partition) -> _Seldom:
    return _Seldom(
        partition.removing_replicas,
        partition.adding_replicas,
        partition.eligible_leader_replicas,
        partition.last_known_elr,
    )


def _with_width(rows: Rows, width: int) -> Rows:
    """The rows laid out for lists of up to `width`; the same array when they are already."""
    old = (rows.shape[1] - _FIXED) // 2
    if old == width:
        return rows
    kept = min(old, width)
    result = np.full((len(rows), _FIXED + 2 * width), -1, dtype=np.int32)
    result[:, : _FIXED + kept] = rows[:, : _FIXED + kept]
    isr = rows[:, _FIXED + old : _FIXED + old + kept]
    result[:, _FIXED + width : _FIXED + width + kept] = isr
    return result


def _equal_directories(
    left: npt.NDArray[np.uint8] | None, right: npt.NDArray[np.uint8] | None
) -> bool:
    if left is None or right is None:
        return left is right
    return bool(np.array_equal(left, right))


_EMPTY_CHUNK: Final = Chunk(np.empty((0, _FIXED), dtype=np.int32), None, {})
