"""All partitions of an image: a tree of rows plus a buffer of recent changes.

Copying the rows around a single change costs as much as the rest of its decision. So changes are
buffered until there are enough of them to apply to the tree, or until a caller needs rows.
Everything else is immutable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.controller.partitions.rows import PARTITION_ID_MAX, PartitionRows, key_of
from quorate.controller.partitions.tree import PartitionTree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    from quorate.controller.partitions.partition import Partition
    from quorate.records.ids import TopicId

    # By key, each with the id of its topic.
    Late: TypeAlias = Mapping[int, tuple[TopicId, Partition]]

# The buffer is copied with each further change.
LATE_MAX: Final = 48
_NONE: Final[Late] = {}


class PartitionStore:
    """Partitions by topic number and partition id; `len()` is their number."""

    __slots__ = ("_count", "_late", "_tree", "replaced")

    def __init__(
        self,
        tree: PartitionTree | None = None,
        late: Late = _NONE,
        *,
        count: int = 0,
        replaced: int = 0,
    ) -> None:
        """`count` is the number of partitions, `replaced` that of entries replaced so far."""
        self._tree = PartitionTree() if tree is None else tree
        self._late = late
        self._count = count
        self.replaced = replaced

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        """True if the same topics have the same partitions; topic numbers are ignored."""
        if not isinstance(other, PartitionStore):
            return NotImplemented
        if self._tree is other._tree and self._late is other._late:
            return True
        return self._count == other._count and self._by_topic() == other._by_topic()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PartitionStore({self._by_topic()!r})"

    def _by_topic(self) -> dict[tuple[TopicId, int], Partition]:
        found = {}
        for part in self.rows.parts_from(0):
            topic_ids = part.topics_at(np.arange(len(part)))
            for topic_id, (key, partition) in zip(topic_ids, part.partitions(), strict=True):
                found[topic_id, key & PARTITION_ID_MAX] = partition
        return found

    @property
    def rows(self) -> PartitionTree:
        """All partitions as rows."""
        if self._late:
            self._tree = self._tree.with_rows(_rows_of(self._late))
            self._late = _NONE
        return self._tree

    def get(self, number: int, partition_id: int) -> Partition | None:
        """The partition of that topic and id, or None."""
        if self._late:
            late = self._late.get(key_of(number, partition_id))
            if late is not None:
                return late[1]
        return self._tree.get(number, partition_id)

    def of_topic(self, number: int, first: int = 0) -> Iterator[tuple[int, Partition]]:
        """The partitions of a topic with their ids, from `first` on."""
        return self.rows.of_topic(number, first)

    def count_of(self, number: int) -> int:
        """Number of partitions of a topic."""
        return self.rows.count_of(number)

    # --- derived stores -------------------------------------------------------------------------

    def with_changes(self, changes: Late, *, added: int) -> PartitionStore:
        """This store with those partitions, of which `added` are new."""
        late = {**self._late, **changes}
        if len(late) > LATE_MAX:
            return self._next(self._tree.with_rows(_rows_of(late)))
        count, replaced = self._count + added, self.replaced + 1
        return PartitionStore(self._tree, late, count=count, replaced=replaced)

    def with_rows(self, rows: PartitionRows) -> PartitionStore:
        """This store with those rows added, replacing rows with the same keys."""
        return self._next(self.rows.with_rows(rows))

    def without(self, number: int) -> PartitionStore:
        """This store without the partitions of one topic."""
        return self._next(self.rows.without(number))

    def _next(self, tree: PartitionTree) -> PartitionStore:
        replaced = self.replaced + tree.replaced - self._tree.replaced
        return PartitionStore(tree, count=len(tree), replaced=replaced)


def _rows_of(late: Late) -> PartitionRows:
    return PartitionRows.made([(key, *late[key]) for key in sorted(late)])
