"""The partitions of a large new topic as columns: no object is made for any of them.

A leader replays what it decides. Record by record that took most of the time of a large creation,
in which nothing else may be decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from quorate.controller.decision import Bulk
from quorate.controller.directory_places import place_type
from quorate.controller.elections import is_among
from quorate.controller.mass_elections import closed_up
from quorate.controller.partition_rows import (
    FIXED,
    ISR,
    LEADER,
    REPLICAS,
    Columns,
    PartitionRows,
    with_number,
)
from quorate.controller.partition_values import partition_values
from quorate.controller.partitions import MIGRATING_DIR, UNASSIGNED_DIR
from quorate.records.value import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.controller.brokers.image import Brokers
    from quorate.controller.directory_places import Places
    from quorate.controller.image import MetadataDelta
    from quorate.controller.partition_rows import Rows
    from quorate.records.ids import DirectoryId, TopicId

# Below this columns cost more than records.
COLUMNS_MIN: Final = 48
# Numbers in rows that are made, encoded and replayed in one turn: a few milliseconds.
_CELLS_SLICE: Final = 12_288
_NONE: Final = PartitionRows.made(())


def rows_max(replicas: int) -> int:
    """How many partitions with so many replicas are taken at once."""
    return max(1, _CELLS_SLICE // (FIXED + 2 * replicas))


@value
class Created(Bulk):
    """Partitions of one new topic; it gets its number when it is replayed."""

    topic_id: TopicId
    rows: PartitionRows
    values: Sequence[bytes]

    def replay(self, delta: MetadataDelta) -> None:
        """Add them. The topic is new, so that nothing is there in their places."""
        topics = delta.topics
        number = topics.topic(self.topic_id).number
        topics.put_rows(with_number(self.rows, number), _NONE)


class NewRows:
    """Makes the partitions of new topics, with the brokers of one moment."""

    def __init__(self, brokers: Brokers, level: int) -> None:
        self._brokers = brokers
        self._level = level
        self._is_active = is_among(brokers.active)

    def created(self, topic_id: TopicId, first: int, replicas: Rows) -> Created:
        """The partitions from `first` on; `replicas` has a row for each of them."""
        count, width = replicas.shape
        stays = self._is_active(replicas)
        isr = replicas if stays.all() else closed_up(replicas, stays)
        fixed = np.zeros((count, FIXED), np.int32)
        fixed[:, LEADER] = isr[:, 0]
        fixed[:, REPLICAS] = width
        fixed[:, ISR] = np.count_nonzero(stays, axis=1)
        keys = np.arange(first, first + count, dtype=np.int64)
        columns = Columns(fixed, replicas, isr)
        directories = self._directories(replicas)
        rows = PartitionRows.of_columns(keys, (topic_id,), columns, directories, {})
        return Created(topic_id, rows, partition_values(rows, self._level))

    def _directories(self, replicas: Rows) -> tuple[Places, tuple[DirectoryId, ...]]:
        """Where each replica is among the directories of its brokers."""
        broker_ids, at = np.unique(replicas, return_inverse=True)
        known: dict[DirectoryId, int] = {}
        places = [
            known.setdefault(directory_for(self._brokers, broker_id), len(known))
            for broker_id in broker_ids.tolist()
        ]
        kind = place_type(len(known))
        return np.array(places, kind)[at].reshape(replicas.shape), tuple(known)


def directory_for(brokers: Brokers, broker_id: int) -> DirectoryId:
    """Where a replica will lie: its broker's only disk, or wherever the broker chooses."""
    log_dirs = brokers.by_id[broker_id].registration.log_dirs
    if not log_dirs:
        return MIGRATING_DIR
    return log_dirs[0] if len(log_dirs) == 1 else UNASSIGNED_DIR
