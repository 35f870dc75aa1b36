"""The partitions of new topics as columns, without an object per partition.

A leader replays its own decisions. Doing so record by record took most of the time of a large
creation, during which nothing else may be decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.controller.decision import Bulk
from quorate.controller.partitions.broker_sets import membership_test
from quorate.controller.partitions.bulk_leader_election import closed_up
from quorate.controller.partitions.directory_index import index_dtype
from quorate.controller.partitions.record_encoder import partition_values
from quorate.controller.partitions.rows import (
    FIXED,
    ISR,
    LEADER,
    PARTITION_ID_BITS,
    REPLICAS,
    Columns,
    PartitionRows,
    with_number,
)
from quorate.records.ids import UUID_BYTES
from quorate.records.value_types import value_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.brokers.image import Brokers
    from quorate.controller.image import MetadataDelta
    from quorate.controller.partitions.directory_index import Places
    from quorate.controller.partitions.rows import Keys, Rows
    from quorate.records.ids import DirectoryId, TopicId

# With fewer partitions columns cost more than records.
COLUMNS_MIN: Final = 48
# Number of cells that are made, encoded and replayed without yielding: a few milliseconds.
_CELLS_SLICE: Final = 12_288
# Size of a PartitionRecord without replicas, and of each replica with its directory and its entry
# in the ISR.
_FIXED_BYTES_MAX: Final = 96
_REPLICA_BYTES: Final = 4 + 4 + UUID_BYTES
_NONE: Final = PartitionRows.made(())


def rows_max(replicas: int) -> int:
    """The number of partitions with this many replicas that are processed together."""
    return max(1, _CELLS_SLICE // (FIXED + 2 * replicas))


def size_max(replicas: int) -> int:
    """The largest size in bytes of the record of a partition with this many replicas."""
    return _FIXED_BYTES_MAX + _REPLICA_BYTES * replicas


@value_type
class Created(Bulk):
    """Consecutive partitions of new topics; replay assigns their numbers."""

    rows: PartitionRows
    values: Sequence[bytes]

    def replay(self, delta: MetadataDelta) -> None:
        """Add the partitions. The topics are new, so their keys are unused."""
        topics = delta.topics
        number = topics.topic(self.rows.topic_ids[0]).number
        topics.put_rows(with_number(self.rows, number), _NONE)


class NewRows:
    """Makes the partitions of new topics, given the brokers at one point in time."""

    def __init__(self, brokers: Brokers, level: int) -> None:
        self._brokers = brokers
        self._level = level
        self._is_active = membership_test(brokers.active)

    def created(self, topic_id: TopicId, first: int, replicas: Rows) -> Created:
        """The partitions from `first` on; `replicas` has a row for each of them."""
        return self._of_keys(np.arange(first, first + len(replicas)), (topic_id,), replicas)

    def created_small(self, topics: Sequence[tuple[TopicId, int]], replicas: Rows) -> Created:
        """All partitions of consecutive topics, each with its number of partitions."""
        counts = np.array([count for _, count in topics])
        firsts = np.cumsum(counts) - counts
        keys = np.arange(len(replicas)) - np.repeat(firsts, counts)
        keys |= np.repeat(np.arange(len(topics)) << PARTITION_ID_BITS, counts)
        return self._of_keys(keys, tuple([topic_id for topic_id, _ in topics]), replicas)

    def _of_keys(self, keys: Keys, topic_ids: tuple[TopicId, ...], replicas: Rows) -> Created:
        count, width = replicas.shape
        stays = self._is_active(replicas)
        isr = replicas if stays.all() else closed_up(replicas, stays)
        fixed = np.zeros((count, FIXED), np.int32)
        fixed[:, LEADER] = isr[:, 0]
        fixed[:, REPLICAS] = width
        fixed[:, ISR] = np.count_nonzero(stays, axis=1)
        columns = Columns(fixed, replicas, isr)
        directories = self._directories(replicas)
        rows = PartitionRows.of_columns(keys, topic_ids, columns, directories, {})
        return Created(rows, partition_values(rows, self._level))

    def _directories(self, replicas: Rows) -> tuple[Places, tuple[DirectoryId, ...]]:
        """The position of each replica's directory among the directories of its brokers."""
        broker_ids, at = np.unique(replicas, return_inverse=True)
        known: dict[DirectoryId, int] = {}
        by_id = self._brokers.by_id
        places = [
            known.setdefault(by_id[broker_id].directory_of_new_replicas, len(known))
            for broker_id in broker_ids.tolist()
        ]
        kind = index_dtype(len(known))
        return np.array(places, kind)[at].reshape(replicas.shape), tuple(known)
