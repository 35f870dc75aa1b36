"""Encodes rows of partitions, and their changes, as record values.

Records of one layout are written together (records/columnar/writer.py), those with rare fields one
by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.features.levels import DIRECTORIES_LEVEL, encode_at
from quorate.controller.partitions.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    partition_record,
)
from quorate.controller.partitions.rows import (
    FIXED,
    ISR,
    LEADER,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    PARTITION_ID_MAX,
    RECOVERY,
    REPLICAS,
)
from quorate.records.columnar.reader import Lists, Numbers, Octets, Structs, distinct
from quorate.records.columnar.writer import encode_columns, values_of
from quorate.records.ids import UUID_BYTES, TopicId
from quorate.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    frame_of,
    record_version,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from quorate.controller.partitions.record_columns import PartitionChangeColumns
    from quorate.controller.partitions.rows import Index, PartitionRows, Rows
    from quorate.records.columnar.reader import Column


def partition_values(rows: PartitionRows, level: int) -> list[bytes]:
    """The encoded PartitionRecord of each row, in order, in the version for `level`."""
    fixed, topics = rows.values[:, :FIXED], rows.topics
    shapes = _mixed(fixed[:, REPLICAS], fixed[:, ISR], fixed[:, RECOVERY] != 0)
    values = by_shape(shapes, lambda at: _of_shape(rows, topics, at, level))
    if rows.seldom:
        for at in np.flatnonzero(np.isin(rows.keys, list(rows.seldom))).tolist():
            partition_id = int(rows.keys[at]) & PARTITION_ID_MAX
            topic_id = TopicId(topics[at].tobytes())
            record = partition_record(topic_id, partition_id, rows.partition(at), level=level)
            values[at] = encode_at(level, record)
    return values


def by_shape(shapes: NDArray[np.int64], write: Callable[[Index], NDArray[np.uint8]]) -> list[bytes]:
    """The values of records, in order; `write` encodes the records of one shape."""
    kinds = distinct(shapes)
    if len(kinds) == 1:
        return values_of(write(np.arange(len(shapes))))
    values = [b""] * len(shapes)
    for kind in kinds.tolist():
        at = np.flatnonzero(shapes == kind)
        for place, value in zip(at.tolist(), values_of(write(at)), strict=True):
            values[place] = value
    return values


def _mixed(replicas: Rows, isr: Rows, has_recovery: NDArray[np.bool_]) -> NDArray[np.int64]:
    return replicas.astype(np.int64) << 33 | isr.astype(np.int64) << 1 | has_recovery


def _of_shape(
    rows: PartitionRows, topics: NDArray[np.uint8], at: Index, level: int
) -> NDArray[np.uint8]:
    """The records of rows with equal numbers of replicas and in-sync replicas, one row each."""
    fixed = rows.values[at, :FIXED]
    replicas, isr = int(fixed[0, REPLICAS]), int(fixed[0, ISR])
    fields: dict[str, Column] = {
        "partition_id": Numbers(rows.partition_ids[at].astype(np.int32)),
        "topic_id": Octets(topics[at]),
        "replicas": _list(rows.replicas[at, :replicas]),
        "isr": _list(rows.isr[at, :isr]),
        "leader": Numbers(fixed[:, LEADER]),
        "leader_epoch": Numbers(fixed[:, LEADER_EPOCH]),
        "partition_epoch": Numbers(fixed[:, PARTITION_EPOCH]),
        "leader_recovery_state": Numbers(fixed[:, RECOVERY].astype(np.int8)),
    }
    if level >= DIRECTORIES_LEVEL and replicas:
        known = np.frombuffer(b"".join(rows.directories), np.uint8).reshape(-1, UUID_BYTES)
        octets = known[rows.places[at, :replicas]]
        fields["directories"] = Lists(replicas, Octets(octets.reshape(-1, UUID_BYTES)))
    version = record_version(PartitionRecord, level)
    head = frame_of(PartitionRecord, version)
    return encode_columns(PartitionRecord, version, Structs(fields), len(at), head=head)


def _list(numbers: Rows) -> Lists:
    return Lists(numbers.shape[1], Numbers(np.ascontiguousarray(numbers).reshape(-1)))


def change_values(changes: PartitionChangeColumns, level: int) -> list[bytes]:
    """The encoded PartitionChangeRecord of each change, in order."""
    elects, recovers = changes.leaders != NO_LEADER_CHANGE, changes.recovery != NO_RECOVERY_CHANGE
    version = record_version(PartitionChangeRecord, level)
    head = frame_of(PartitionChangeRecord, version)

    def write(at: Index) -> NDArray[np.uint8]:
        size = int(changes.isr_sizes[at[0]])
        fields: dict[str, Column] = {
            "partition_id": Numbers(changes.partition_ids[at].astype(np.int32)),
            "topic_id": Octets(changes.topics[at]),
            "leader": Numbers(changes.leaders[at]),
            "leader_recovery_state": Numbers(changes.recovery[at].astype(np.int8)),
        }
        if size >= 0:
            fields["isr"] = _list(changes.isr[at, :size])
        columns = Structs(fields)
        return encode_columns(PartitionChangeRecord, version, columns, len(at), head=head)

    shapes = (changes.isr_sizes + 1).astype(np.int64) << 2 | elects << 1 | recovers
    return by_shape(shapes, write)
