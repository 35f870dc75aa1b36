"""Immutable shallow tree of partition rows.

Nodes hold parts of up to ROWS_MAX rows, in key order. A change copies only the parts and nodes that
it affects; a reader with the earlier tree sees the earlier state.
Topics are numbered in order of creation and numbers are not reused, so that new partitions are
appended, where parts are kept full, and iteration can resume at a key after any changes. When rows
are removed, neighbouring small parts are merged.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from quorate.controller.partitions.row_merge import upserted
from quorate.controller.partitions.rows import (
    FIXED,
    PARTITION_ID_MAX,
    PartitionRows,
    key_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quorate.controller.partitions.partition import Partition
    from quorate.controller.partitions.rows import Keys
    from quorate.records.ids import TopicId

ROWS_MAX: Final = 512
NODE_MAX: Final = 128


class _Node(NamedTuple):
    """Neighbouring parts, and the first key of each."""

    firsts: tuple[int, ...]
    parts: tuple[PartitionRows, ...]


class PartitionTree:
    """Partitions by topic number and partition id; `len()` is their number."""

    __slots__ = ("_count", "_firsts", "_nodes", "replaced")

    def __init__(self, nodes: tuple[_Node, ...] = (), count: int = 0, *, replaced: int = 0) -> None:
        """`replaced` counts the parts replaced since the first, empty tree."""
        self._nodes = nodes
        self._firsts = tuple([node.firsts[0] for node in nodes])
        self._count = count
        self.replaced = replaced

    def __len__(self) -> int:
        return self._count

    def get(self, number: int, partition_id: int) -> Partition | None:
        """The partition of that topic and id, or None."""
        key = key_of(number, partition_id)
        if not self._nodes or key < 0:
            return None
        part = self._part_of(key)
        row = part.row_of(key)
        return None if row is None else part.partition(row)

    def _part_of(self, key: int) -> PartitionRows:
        """The part that contains the key, if the key exists."""
        node = self._nodes[max(bisect_right(self._firsts, key) - 1, 0)]
        return node.parts[max(bisect_right(node.firsts, key) - 1, 0)]

    def parts_from(self, key: int) -> Iterator[PartitionRows]:
        """The parts from the part of `key` on; the first may start, or even end, before the key."""
        at = max(bisect_right(self._firsts, key) - 1, 0)
        for node in self._nodes[at : at + 1]:
            yield from node.parts[max(bisect_right(node.firsts, key) - 1, 0) :]
        for node in self._nodes[at + 1 :]:
            yield from node.parts

    @property
    def end(self) -> int:
        """The last key plus one."""
        return int(self._nodes[-1].parts[-1].keys[-1]) + 1 if self._nodes else 0

    def count_of(self, number: int) -> int:
        """Number of partitions of a topic."""
        return sum(stop - start for _, start, stop in self._ranges_of(number, 0))

    def of_topic(self, number: int, first: int = 0) -> Iterator[tuple[int, Partition]]:
        """The partitions of a topic with their ids, from `first` on."""
        for part, start, stop in self._ranges_of(number, max(first, 0)):
            for row in range(start, stop):
                yield int(part.keys[row]) & PARTITION_ID_MAX, part.partition(row)

    def parts_of(self, number: int, topic_id: TopicId) -> Iterator[PartitionRows]:
        """The rows of one topic, in one or more parts."""
        for part, start, stop in self._ranges_of(number, 0):
            yield part.topic_view(start, stop, topic_id)

    def _ranges_of(self, number: int, first: int) -> Iterator[tuple[PartitionRows, int, int]]:
        """The rows of a topic from partition `first` on: parts, with first row and end in each."""
        low, high = key_of(number, first), key_of(number + 1, 0)
        for part in self.parts_from(low):
            start, stop = part.rows_between(low, high)
            if start < stop:
                yield part, start, stop
            if stop < len(part):
                return

    def rows_from(self, key: int, cells: int) -> PartitionRows | None:
        """Rows from `key` on: as many parts as fit into `cells`, but at least one.

        None if there are no rows. A reader can resume after the last key.
        """
        chosen: list[PartitionRows] = []
        count = width = 0
        for part in self.parts_from(key):
            if not chosen:
                part = part.copied(int(part.keys.searchsorted(key)), len(part))
            if not len(part):
                continue
            count, width = count + len(part), max(width, part.width)
            if chosen and count * (FIXED + 2 * width) > cells:
                break
            chosen.append(part)
        return PartitionRows.joined(chosen) if chosen else None

    def parts_touched(self, keys: Keys) -> int:
        """The number of parts to which ascending keys belong."""
        return sum(1 for _ in self._shared(keys))

    def rows_at(self, keys: Keys) -> PartitionRows:
        """The existing rows of ascending keys."""
        found = []
        for at, index, start, stop in self._shared(keys):
            part, wanted = self._nodes[at].parts[index], keys[start:stop]
            rows = part.keys.searchsorted(wanted)
            rows = rows[part.keys[np.minimum(rows, len(part) - 1)] == wanted]
            if len(rows):
                found.append(part.taken(rows))
        return PartitionRows.joined(found) if found else PartitionRows.made([])

    def _shared(self, keys: Keys) -> Iterator[tuple[int, int, int, int]]:
        """Node and index of each part with some of the keys, and the range of these keys."""
        start = 0
        while start < len(keys) and self._nodes:
            at, index, end = self._place_of(int(keys[start]))
            stop = len(keys) if end is None else int(keys.searchsorted(end))
            yield at, index, start, stop
            start = stop

    # --- derived trees --------------------------------------------------------------------------

    def with_rows(self, rows: PartitionRows) -> PartitionTree:
        """This tree with those rows added, replacing rows with the same keys."""
        if not len(rows):
            return self
        if not self._nodes:
            nodes = _nodes(_cut(rows, is_last=True))
            return PartitionTree(tuple(nodes), len(rows), replaced=self.replaced)
        edits: dict[int, list[tuple[int, list[PartitionRows]]]] = {}
        count = self._count
        for at, index, start, stop in self._shared(rows.keys):
            before = self._nodes[at].parts[index]
            after = upserted(before, rows, start, stop)
            count += len(after) - len(before)
            is_last = at == len(self._nodes) - 1 and index == len(self._nodes[at].parts) - 1
            edits.setdefault(at, []).append((index, _cut(after, is_last=is_last)))
        nodes = []
        kept = 0
        for at, changed in edits.items():
            nodes += self._nodes[kept:at]
            nodes += _edited(self._nodes[at], changed)
            kept = at + 1
        nodes += self._nodes[kept:]
        replaced = self.replaced + sum(map(len, edits.values()))
        return PartitionTree(tuple(nodes), count, replaced=replaced)

    def _place_of(self, key: int) -> tuple[int, int, int | None]:
        """Node and part to which a key belongs, and the first key after that part."""
        at = max(bisect_right(self._firsts, key) - 1, 0)
        firsts = self._nodes[at].firsts
        index = max(bisect_right(firsts, key) - 1, 0)
        if index + 1 < len(firsts):
            return at, index, firsts[index + 1]
        return at, index, self._firsts[at + 1] if at + 1 < len(self._firsts) else None

    def without(self, number: int) -> PartitionTree:
        """This tree without the partitions of one topic."""
        low, high = key_of(number, 0), key_of(number + 1, 0)
        if not self._nodes:
            return self
        first, index, _ = self._place_of(low)
        last, behind, _ = self._place_of(high - 1)
        head, tail = self._nodes[first].parts[index], self._nodes[last].parts[behind]
        left = head.copied(0, int(head.keys.searchsorted(low)))
        right = tail.copied(int(tail.keys.searchsorted(high)), len(tail))
        gone = self._between(first, index, last, behind)
        removed = sum(map(len, gone)) - len(left) - len(right)
        if not removed:
            return self
        # Neighbouring nodes, too, so that small ones are merged.
        begin, end = max(first - 1, 0), last + 2
        before = [part for node in self._nodes[begin:first] for part in node.parts]
        before += self._nodes[first].parts[:index]
        after = [*self._nodes[last].parts[behind + 1 :]]
        after += [part for node in self._nodes[last + 1 : end] for part in node.parts]
        middle = _closed_up([*before[-1:], left, right, *after[:1]])
        parts = [*before[:-1], *middle, *after[1:]]
        nodes = (*self._nodes[:begin], *_nodes(parts), *self._nodes[end:])
        return PartitionTree(nodes, self._count - removed, replaced=self.replaced + len(gone))

    def _between(self, first: int, index: int, last: int, behind: int) -> list[PartitionRows]:
        """The parts from one to another, both included."""
        nodes = self._nodes
        if first == last:
            return [*nodes[first].parts[index : behind + 1]]
        between = [part for node in nodes[first + 1 : last] for part in node.parts]
        return [*nodes[first].parts[index:], *between, *nodes[last].parts[: behind + 1]]

    def disposable_parts(self) -> list[object]:
        """Its nodes, for disposal in time slices."""
        return [*self._nodes]


def _edited(node: _Node, edits: Sequence[tuple[int, list[PartitionRows]]]) -> list[_Node]:
    """A node with some of its parts replaced."""
    parts, firsts = list(node.parts), list(node.firsts)
    for index, instead in reversed(edits):
        parts[index : index + 1] = instead
        firsts[index : index + 1] = [int(part.keys[0]) for part in instead]
    if len(parts) <= NODE_MAX:
        return [_Node(tuple(firsts), tuple(parts))]
    return _nodes(parts)


def _cut(rows: PartitionRows, *, is_last: bool) -> list[PartitionRows]:
    """Split rows into parts; at the end of the tree, where rows are appended, into full ones."""
    count = len(rows)
    if count <= ROWS_MAX:
        return [rows]
    size = ROWS_MAX if is_last else -(-count // -(-count // ROWS_MAX))
    return [rows.copied(start, min(start + size, count)) for start in range(0, count, size)]


def _nodes(parts: Sequence[PartitionRows]) -> list[_Node]:
    """Distribute parts over nodes of about equal size."""
    if not parts:
        return []
    size = -(-len(parts) // -(-len(parts) // NODE_MAX))
    nodes = []
    for start in range(0, len(parts), size):
        some = tuple(parts[start : start + size])
        nodes.append(_Node(tuple([int(part.keys[0]) for part in some]), some))
    return nodes


def _closed_up(parts: Sequence[PartitionRows]) -> list[PartitionRows]:
    """Merge neighbouring parts that fit into one."""
    closed: list[PartitionRows] = []
    for part in parts:
        if closed and len(closed[-1]) + len(part) <= ROWS_MAX:
            closed[-1] = PartitionRows.joined([each for each in (closed[-1], part) if len(each)])
        elif len(part):
            closed.append(part)
    return closed
