"""Interns log-directory ids, so that a replica stores a small index instead of 16 bytes.

A broker has a few directories, and a replica lies in one of them. Sixteen bytes for each replica of
millions of partitions would be half of their memory; an index into a list takes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from quorate.records.ids import UUID_BYTES, DirectoryId

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from numpy.typing import NDArray

    # Of the smallest type that holds all places of a list.
    Places: TypeAlias = NDArray[Any]

# A list that is longer than this, and than there are rows, is looked through.
KEPT_MAX: Final = 64
# One of so many rows is looked at first: nearly always the others have the same directories. Seven
# replicas are rare, so that the first, the second and every other replica has its turn.
_SAMPLED: Final = 7
# A directory is found by some bits of what it is mixed into, which few directories share.
_BUCKETS: Final = 1 << 16
_BUCKET_SHIFT: Final = np.uint64(48)
_UINT8: Final = np.dtype(np.uint8)
# Multiplies one half of an id before the other is mixed in; any odd number would do.
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
            # Two directories with the same mixed number, a case that never occurs in practice.
            _, first, places = np.unique(octets, axis=0, return_index=True, return_inverse=True)
    data = octets[first].tobytes()
    ids = [DirectoryId(data[at : at + UUID_BYTES]) for at in range(0, len(data), UUID_BYTES)]
    return places.reshape(-1).astype(index_dtype(len(ids))), tuple(ids)


def _are_at(rows: NDArray[np.uint64], first: NDArray[np.intp], places: Places) -> bool:
    """True if each row is the one that `first` has for its index."""
    return bool((rows.take(first, 0).take(places, 0) == rows).all())


def remap(places: Places, moved: Sequence[int] | None, kind: npt.DTypeLike) -> Places:
    """Indexes into a list of directories as those into another one."""
    if moved is None:
        return places if places.dtype == kind else places.astype(kind)
    # With an empty list there are only padded indexes, which are 0.
    return np.array(moved or [0], kind).take(places)


def without_unused(
    places: Places, directories: tuple[DirectoryId, ...]
) -> tuple[Places, tuple[DirectoryId, ...]]:
    """Only the directories that are used, if those are few of all."""
    used, inverse = np.unique(places, return_inverse=True)
    if 2 * len(used) > len(directories):
        return places, directories
    kept = tuple([directories[place] for place in used.tolist()])
    return inverse.reshape(places.shape).astype(index_dtype(len(kept))), kept


def merge_tables(
    tables: Sequence[tuple[DirectoryId, ...]],
) -> tuple[tuple[DirectoryId, ...], list[Sequence[int] | None]]:
    """One list of directories for several, and the index of each one's in it; None for unmoved."""
    first = tables[0]
    if all(table == first for table in tables):
        return first, [None] * len(tables)
    known = {directory: place for place, directory in enumerate(first)}
    moved: list[Sequence[int] | None] = []
    for table in tables:
        is_first = table == first
        moved.append(None if is_first else [known.setdefault(each, len(known)) for each in table])
    return tuple(known), moved
