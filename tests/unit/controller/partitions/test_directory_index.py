from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.partitions import directory_index
from quorate.controller.partitions.directory_index import (
    index_dtype,
    interned,
    merge_tables,
    remap,
    without_unused,
)
from quorate.records.ids import DirectoryId

directories = st.integers(0, 400).map(lambda number: DirectoryId(number.to_bytes(16)))


@given(st.lists(directories))
def test_directories_are_found_at_their_places(ids: list[DirectoryId]) -> None:
    octets = np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16)
    places, known = interned(octets)
    assert [known[place] for place in places.tolist()] == ids
    assert len(set(known)) == len(known)


def test_directories_that_are_mixed_into_one_number_are_kept_apart() -> None:
    """The upper half of the second undoes what its lower half adds."""
    spread = int(directory_index._SPREAD)
    ids = [bytes(16), (1).to_bytes(8, "little") + spread.to_bytes(8, "little")]
    places, known = interned(np.frombuffer(b"".join(ids * 2), np.uint8).reshape(-1, 16))
    assert [known[place] for place in places.tolist()] == ids * 2


def test_directories_that_share_what_they_are_found_by_are_kept_apart() -> None:
    ids = [bytes(8) + number.to_bytes(8, "little") for number in (1, 2)]
    places, known = interned(np.frombuffer(b"".join(ids * 20), np.uint8).reshape(-1, 16))
    assert [known[place] for place in places.tolist()] == ids * 20


@given(st.lists(st.lists(directories, unique=True).map(tuple), min_size=1, max_size=4))
def test_lists_become_one_list(tables: list[tuple[DirectoryId, ...]]) -> None:
    together, moved = merge_tables([*tables, tables[0]])
    assert len(set(together)) == len(together)
    for table, each in zip([*tables, tables[0]], moved, strict=True):
        places = np.arange(len(table), dtype=index_dtype(len(table)))
        there = remap(places, each, index_dtype(len(together)))
        assert tuple(together[place] for place in there.tolist()) == table


def test_what_is_in_no_place_is_left_out_where_it_is_most() -> None:
    ids = tuple(DirectoryId(number.to_bytes(16)) for number in range(10))
    places, kept = without_unused(np.array([[9, 3], [3, 3]], np.uint8), ids)
    assert [kept[place] for place in places.reshape(-1)] == [ids[9], ids[3], ids[3], ids[3]]
    assert len(kept) == 2
    all_used = np.arange(10, dtype=np.uint8).reshape(5, 2)
    assert without_unused(all_used, ids) == (all_used, ids)


def test_places_are_as_small_as_their_list_allows() -> None:
    assert [np.dtype(index_dtype(count)).itemsize for count in (0, 256, 257, 70_000)] == [
        1,
        1,
        2,
        4,
    ]
