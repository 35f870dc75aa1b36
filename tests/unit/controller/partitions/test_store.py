"""The store keeps what was put into it, for all that have it, and works it into rows when asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.partitions import store as partition_store
from quorate.controller.partitions.partition import Partition
from quorate.controller.partitions.rows import PartitionRows, key_of
from quorate.controller.partitions.store import LATE_MAX, PartitionStore
from tests.unit.controller.partitions.test_rows import ONE, made, tables, topic_id_of

if TYPE_CHECKING:
    from quorate.records.ids import TopicId


def late_of(table: dict[int, Partition]) -> dict[int, tuple[TopicId, Partition]]:
    return {key: (topic_id_of(key), partition) for key, partition in table.items()}


def changed(
    store: PartitionStore, before: dict[int, Partition], table: dict[int, Partition]
) -> PartitionStore:
    return store.with_changes(late_of(table), added=len(table.keys() - before.keys()))


def store_of(table: dict[int, Partition]) -> PartitionStore:
    return changed(PartitionStore(), {}, table)


def held(store: PartitionStore) -> dict[int, Partition]:
    found = {key: p for part in store.rows.parts_from(0) for key, p in part.partitions()}
    assert len(store) == len(found)
    return found


@given(
    steps=st.lists(st.tuples(st.sampled_from(["late", "rows"]), tables) | st.integers(0, 4)),
    late_max=st.integers(0, 5),
)
def test_a_store_holds_what_was_put_into_it(
    steps: list[tuple[str, dict[int, Partition]] | int], late_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_store, "LATE_MAX", late_max)
        store, expected = PartitionStore(), dict[int, Partition]()
        for step in steps:
            before, was = store, dict(expected)
            match step:
                case int():
                    store = store.without(step)
                    gone = range(key_of(step, 0), key_of(step + 1, 0))
                    expected = {key: p for key, p in expected.items() if key not in gone}
                case "late", table:
                    store = changed(store, expected, table)
                    expected |= table
                case _, table:
                    store = store.with_rows(made(table))
                    expected |= table
            assert all(store.get(0, n) == expected.get(key_of(0, n)) for n in range(-1, 7))
            assert len(store) == len(expected)
            assert held(before) == was
        assert held(store) == expected
        assert dict(store.of_topic(1)) == {
            key - key_of(1, 0): expected[key]
            for key in sorted(expected)
            if key in range(key_of(1, 0), key_of(2, 0))
        }
        assert store.count_of(1) == len(dict(store.of_topic(1)))


@given(left=tables, right=tables)
def test_stores_are_equal_exactly_when_their_partitions_are(
    left: dict[int, Partition], right: dict[int, Partition]
) -> None:
    assert (store_of(left) == store_of(right)) is (left == right)


def test_numbers_of_topics_do_not_count_when_stores_are_compared() -> None:
    other = replace(ONE, leader=1)
    one = store_of({key_of(1, 0): ONE, key_of(2, 0): other})
    second = PartitionRows.made([(key_of(5, 0), topic_id_of(key_of(2, 0)), other)])
    first = PartitionRows.made([(key_of(6, 0), topic_id_of(key_of(1, 0)), ONE)])
    assert one == PartitionStore().with_rows(second).with_rows(first)
    assert one != "store"
    assert "leader=1" in repr(one)
    with pytest.raises(TypeError):
        hash(one)


def test_a_few_changes_copy_no_rows_before_there_are_many() -> None:
    table = {key_of(1, number): ONE for number in range(2 * LATE_MAX)}
    store = PartitionStore().with_rows(made(table))
    rows = store.rows
    for number in range(LATE_MAX):
        store = changed(store, table, {key_of(1, number): replace(ONE, leader=1)})
        assert store._tree is rows
    assert changed(store, table, {key_of(1, LATE_MAX): ONE})._tree is not rows
    assert store.get(1, 0) == replace(ONE, leader=1)


def test_a_store_counts_what_only_earlier_ones_hold() -> None:
    store = store_of({key_of(1, 0): ONE})
    assert store.replaced == 1
    assert store.with_rows(made({key_of(1, 0): ONE})).replaced == 2
    assert store.without(1).replaced == 2
    assert store.without(2).replaced == 1
