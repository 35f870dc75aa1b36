"""Interns log-directory ids, so that a replica stores a small index instead of 16 bytes.

A broker has a few directories, and a replica is in one of them. Sixteen bytes for each replica of
millions of partitions would be half of their memory; an index into a list takes one byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from quorate.records.ids import UUID_BYTES, DirectoryId

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from numpy.typing import NDArray

    # Of the smallest type that can hold all indexes into a list.
    Places: TypeAlias = NDArray[Any]

# Unused entries are searched only in lists longer than this, and than the number of rows.
KEPT_MAX: Final = 64
# Every seventh row is examined first: the others nearly always have the same directories. A
# replication factor of 7 is rare; with others the sample includes the first, the second and all
# other replicas.
_SAMPLED: Final = 7
# Directories are hashed to this number of buckets, so that few share one.
_BUCKETS: Final = 1 << 16
_BUCKET_SHIFT: Final = np.uint64(48)
_UINT8: Final = np.dtype(np.uint8)
# Hash multiplier for one half of an id; any odd number would do.
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


def index_dtype(count: int) -> npt.DTypeLike:
    """The type of indexes into a list of that size."""
    return _UINT8 if count <= 256 else np.min_scalar_type(count - 1)


def interned(octets: NDArray[np.uint8]) -> tuple[Places, tuple[DirectoryId, ...]]:
    """The directories in these rows of sixteen bytes, and the index of each row among them."""
    if not len(octets):
        return np.zeros(0, np.uint8), ()
    halves = np.ascontiguousarray(octets).view(np.uint64)
    mixed = halves[:, 0] * _SPREAD ^ halves[:, 1]
    _, first = np.unique(mixed[::_SAMPLED], return_index=True)
    first *= _SAMPLED
    bits = (mixed >> _BUCKET_SHIFT).astype(np.intp)
    buckets = np.zeros(_BUCKETS, index_dtype(len(first)))
    buckets[bits[first]] = np.arange(len(first))
    places = buckets.take(bits)
    if not _are_at(halves, first, places):
        _, first, places = np.unique(mixed, return_index=True, return_inverse=True)
        if not _are_at(halves, first, places):
            # Two directories have the same hash, which never occurs in practice.
            _, first, places = np.unique(octets, axis=0, return_index=True, return_inverse=True)
    data = octets[first].tobytes()
    ids = [DirectoryId(data[at : at + UUID_BYTES]) for at in range(0, len(data), UUID_BYTES)]
    return places.reshape(-1).astype(index_dtype(len(ids))), tuple(ids)


def _are_at(rows: NDArray[np.uint64], first: NDArray[np.intp], places: Places) -> bool:
    """True if each row equals the row that `first` gives for its index."""
    return bool((rows.take(first, 0).take(places, 0) == rows).all())


def remap(places: Places, moved: Sequence[int] | None, kind: npt.DTypeLike) -> Places:
    """Translate indexes into one list of directories to indexes into another list."""
    if moved is None:
        return places if places.dtype == kind else places.astype(kind)
    # With an empty list there are only padded indexes, which are 0.
    return np.array(moved or [0], kind).take(places)


def without_unused(
    places: Places, directories: tuple[DirectoryId, ...]
) -> tuple[Places, tuple[DirectoryId, ...]]:
    """Drop unused directories, if they are most of the list."""
    used, inverse = np.unique(places, return_inverse=True)
    if 2 * len(used) > len(directories):
        return places, directories
    kept = tuple([directories[place] for place in used.tolist()])
    return inverse.reshape(places.shape).astype(index_dtype(len(kept))), kept


def merge_tables(
    tables: Sequence[tuple[DirectoryId, ...]],
) -> tuple[tuple[DirectoryId, ...], list[Sequence[int] | None]]:
    """Merge lists of directories; also return each list's new indexes, or None if unchanged."""
    first = tables[0]
    if all(table == first for table in tables):
        return first, [None] * len(tables)
    known = {directory: place for place, directory in enumerate(first)}
    moved: list[Sequence[int] | None] = []
    for table in tables:
        is_first = table == first
        moved.append(None if is_first else [known.setdefault(each, len(known)) for each in table])
    return tuple(known), moved
