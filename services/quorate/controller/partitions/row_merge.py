"""Merges rows of partitions into others, ordered by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quorate.controller.partitions.directory_index import index_dtype, merge_tables, remap
from quorate.controller.partitions.rows import PartitionRows, padded, with_width

if TYPE_CHECKING:
    from quorate.controller.partitions.rows import Index


def upserted(rows: PartitionRows, other: PartitionRows, start: int, stop: int) -> PartitionRows:
    """Merge rows of `other` from `start` to `stop` into `rows`.

    For equal keys the rows of `other` win.
    """
    keys = other.keys[start:stop]
    if not len(rows) or keys[0] > rows.keys[-1]:
        return PartitionRows.joined([each for each in (rows, other.view(start, stop)) if len(each)])
    at = rows.keys.searchsorted(keys)
    if at[-1] < len(rows) and (rows.keys[at] == keys).all():
        return _replaced(rows, at, other, start, stop)
    is_kept = np.ones(len(rows), np.bool_)
    is_kept[at[rows.keys.take(at, mode="clip") == keys]] = False
    kept = rows.taken(np.flatnonzero(is_kept))
    both = PartitionRows.joined((kept, other.view(start, stop)))
    return both.taken(np.argsort(both.keys))


def _replaced(
    rows: PartitionRows, at: Index, other: PartitionRows, start: int, stop: int
) -> PartitionRows:
    """Replace some rows by others with the same keys."""
    width = max(rows.width, other.width)
    directories, (mine, theirs) = merge_tables([rows.directories, other.directories])
    kind = index_dtype(len(directories))
    values = with_width(rows.values, width)
    values = values.copy() if values is rows.values else values
    values[at] = with_width(other.values[start:stop], width)
    places = padded(remap(rows.places, mine, kind), width)
    places = places.copy() if places is rows.places else places
    places[at] = padded(remap(other.places[start:stop], theirs, kind), width)
    seldom = rows.seldom
    if seldom or other.seldom:
        keys = set(other.keys[start:stop].tolist())
        seldom = {key: each for key, each in seldom.items() if key not in keys}
        seldom |= {key: each for key, each in other.seldom.items() if key in keys}
    return PartitionRows(rows.keys, rows.topic_ids, values, places, directories, seldom)
