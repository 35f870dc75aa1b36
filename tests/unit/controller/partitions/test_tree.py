"""A tree keeps what was put into it, for all that have it, and leaves no holes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.partitions import tree as partition_tree
from quorate.controller.partitions.partition import Partition
from quorate.controller.partitions.rows import FIXED, key_of
from quorate.controller.partitions.tree import PartitionTree
from tests.unit.controller.partitions.test_rows import ONE, keys, made, tables


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_tree, "ROWS_MAX", 4)
    monkeypatch.setattr(partition_tree, "NODE_MAX", 3)


def tree_of(table: dict[int, Partition]) -> PartitionTree:
    return PartitionTree().with_rows(made(table))


def held(tree: PartitionTree) -> dict[int, Partition]:
    """The content of the tree, whose parts are of the right size and in order."""
    parts = list(tree.parts_from(0))
    found = {key: partition for part in parts for key, partition in part.partitions()}
    assert list(found) == sorted(found)
    assert len(tree) == len(found)
    assert all(0 < len(part) <= partition_tree.ROWS_MAX for part in parts)
    for node in tree.disposable_parts():
        assert isinstance(node, tuple)
        firsts, in_node = node
        assert firsts == tuple(part.keys[0] for part in in_node)
        assert len(in_node) <= partition_tree.NODE_MAX
    return found


def changed(tree: PartitionTree, table: dict[int, Partition]) -> PartitionTree:
    return tree.with_rows(made(table)) if table else tree


@given(steps=st.lists(tables | st.integers(0, 4), max_size=6))
def test_a_tree_holds_what_was_put_into_it(steps: list[dict[int, Partition] | int]) -> None:
    tree, expected = PartitionTree(), dict[int, Partition]()
    for step in steps:
        before, was = tree, dict(expected)
        if isinstance(step, int):
            tree = tree.without(step)
            expected = {
                key: partition
                for key, partition in expected.items()
                if not key_of(step, 0) <= key < key_of(step + 1, 0)
            }
        else:
            tree = changed(tree, step)
            expected |= step
        assert held(before) == was
        assert held(tree) == expected
    for number in range(5):
        of_topic = {
            key - key_of(number, 0): partition
            for key, partition in sorted(expected.items())
            if key_of(number, 0) <= key < key_of(number + 1, 0)
        }
        assert dict(tree.of_topic(number)) == of_topic
        assert tree.count_of(number) == len(of_topic)
        assert dict(tree.of_topic(number, 2)) == {n: p for n, p in of_topic.items() if n >= 2}
        assert all(tree.get(number, n) == of_topic.get(n) for n in range(-1, 8))


@given(table=tables, key=keys, cells=st.integers(0, 40))
def test_who_goes_on_behind_the_last_key_misses_nobody(
    table: dict[int, Partition], key: int, cells: int
) -> None:
    tree, found = tree_of(table), dict[int, Partition]()
    while (rows := tree.rows_from(key, cells)) is not None:
        assert len(rows) <= partition_tree.ROWS_MAX or rows.cell_count <= cells
        found |= dict(rows.partitions())
        key = int(rows.keys[-1]) + 1
    first = min(found, default=key)
    assert found == {each: p for each, p in table.items() if each >= first}
    assert not [each for each in table if key <= each < first]


def test_one_very_wide_row_does_not_widen_all_that_is_looked_at_with_it() -> None:
    wide = replace(ONE, isr=tuple(range(1000)))
    tree = tree_of(dict.fromkeys(range(8), ONE)).with_rows(made({8: wide}))
    first = tree.rows_from(0, 8 * (FIXED + 2 * 3))
    assert first is not None
    assert len(first) == 8
    assert first.width == 2


def test_topics_that_come_and_go_leave_no_holes() -> None:
    seed = random.SystemRandom().randrange(2**32)
    draw = random.Random(seed)
    tree, live = PartitionTree(), dict[int, int]()
    for number in range(400):
        count = draw.choice((1, 1, 2, 3, 9, 30))
        tree = tree.with_rows(made({key_of(number, n): ONE for n in range(count)}))
        live[number] = count
        while len(live) > 20:
            gone = draw.choice([*live])
            tree = tree.without(gone)
            del live[gone]
        assert len(held(tree)) == sum(live.values()), f"seed {seed}"
        parts = [len(part) for part in tree.parts_from(0)]
        # Two neighbours of one node are more than one part can hold; nodes have three parts.
        assert len(parts) <= 3 * sum(parts) / partition_tree.ROWS_MAX + 2, f"seed {seed}"
        nodes = len(tree.disposable_parts())
        assert nodes <= len(parts), f"seed {seed}"


def test_a_change_copies_the_parts_that_it_touches_and_no_others() -> None:
    tree = tree_of(dict.fromkeys(range(40), ONE))
    after = tree.with_rows(made({21: replace(ONE, leader=1)}))
    before = {id(part) for part in tree.parts_from(0)}
    assert [id(part) in before for part in after.parts_from(0)] == [True] * 5 + [False] + [True] * 4
    assert after.replaced == tree.replaced + 1
    assert after.without(0).replaced == after.replaced + 10


def test_what_is_added_at_the_end_fills_parts() -> None:
    tree = PartitionTree()
    for number in range(10):
        tree = tree.with_rows(made({key_of(number, 0): ONE}))
    assert [len(part) for part in tree.parts_from(0)] == [4, 4, 2]
