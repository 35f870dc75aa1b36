"""Rows of partitions put between and in the place of others, all in the order of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.directory_places import mapped, place_type, unified
from quorate.controller.partition_rows import PartitionRows, padded, with_width

if TYPE_CHECKING:
    from quorate.controller.partition_rows import Index


def upserted(rows: PartitionRows, other: PartitionRows) -> PartitionRows:
    """Rows with others put between them, all by key; of two with one key the other's stays."""
    if not len(rows) or other.keys[0] > rows.keys[-1]:
        return PartitionRows.joined([part for part in (rows, other) if len(part)])
    at = rows.keys.searchsorted(other.keys)
    if at[-1] < len(rows) and (rows.keys[at] == other.keys).all():
        return replaced(rows, at, other)
    kept = rows.taken(np.flatnonzero(~np.isin(rows.keys, other.keys)))
    both = PartitionRows.joined((kept, other))
    return both.taken(np.argsort(both.keys))


def replaced(rows: PartitionRows, at: Index, other: PartitionRows) -> PartitionRows:
    """Rows with others in the place of some, which have the same keys."""
    width = max(rows.width, other.width)
    directories, (mine, theirs) = unified([rows.directories, other.directories])
    kind = place_type(len(directories))
    values = with_width(rows.values, width)
    values = values.copy() if values is rows.values else values
    values[at] = with_width(other.values, width)
    places = padded(mapped(rows.places, mine, kind), width)
    places = places.copy() if places is rows.places else places
    places[at] = padded(mapped(other.places, theirs, kind), width)
    seldom = other.seldom
    if rows.seldom:
        gone = set(other.keys.tolist())
        seldom = {key: each for key, each in rows.seldom.items() if key not in gone}
        seldom.update(other.seldom)
    return PartitionRows(rows.keys, rows.topic_ids, values, places, directories, seldom)
