"""Rows hold what was put into them, however they are joined, parted and changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.partitions.partition import (
    LOST_DIR,
    MIGRATING_DIR,
    UNASSIGNED_DIR,
    Partition,
)
from quorate.controller.partitions.rows import (
    FIXED,
    PARTITION_ID_BITS,
    PARTITION_ID_MAX,
    PartitionRows,
    key_of,
    with_number,
)
from quorate.records.ids import DirectoryId, TopicId

ONE = Partition(replicas=(1, 2), isr=(2,), leader=2, directories=(UNASSIGNED_DIR,) * 2)

ids = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)
directories = st.sampled_from(
    [UNASSIGNED_DIR, LOST_DIR, MIGRATING_DIR, DirectoryId(b"\x01" * 15 + b"\x00")]
)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    replicas = draw(st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple))
    return Partition(
        replicas=replicas,
        isr=draw(ids),
        leader=draw(st.integers(-1, 9)),
        leader_epoch=draw(st.integers(0, 2**31 - 1)),
        partition_epoch=draw(st.integers(0, 2**31 - 1)),
        leader_recovery_state=draw(st.integers(0, 1)),
        directories=tuple(draw(directories) for _ in replicas),
        removing_replicas=draw(ids),
        adding_replicas=draw(ids),
        eligible_leader_replicas=draw(ids),
        last_known_elr=draw(ids),
    )


keys = st.builds(key_of, st.integers(0, 4), st.sampled_from([0, 1, 2, 5, PARTITION_ID_MAX]))
tables = st.dictionaries(keys, partitions(), max_size=8)


def topic_id_of(key: int) -> TopicId:
    return TopicId((key >> PARTITION_ID_BITS).to_bytes(16))


def made(table: dict[int, Partition]) -> PartitionRows:
    return PartitionRows.made([(key, topic_id_of(key), table[key]) for key in sorted(table)])


def held(rows: PartitionRows) -> dict[int, Partition]:
    """The content of the rows, read in all ways that they offer."""
    found = dict(rows.partitions())
    assert found == {key: rows.partition(row) for key, row in zip(found, range(99), strict=False)}
    assert rows.topics_at(np.arange(len(rows))) == [topic_id_of(key) for key in found]
    return found


@given(tables)
def test_rows_hold_what_they_are_made_of(table: dict[int, Partition]) -> None:
    rows = made(table)
    assert held(rows) == table
    assert len(rows) == len(table)
    assert rows.keys.tolist() == sorted(table)
    assert all(rows.row_of(key) == row for row, key in enumerate(sorted(table)))
    assert rows.row_of(77) is None


@given(table=tables, start=st.integers(0, 8), stop=st.integers(0, 8))
def test_a_part_holds_its_rows_and_keeps_no_others(
    table: dict[int, Partition], start: int, stop: int
) -> None:
    rows = made(table)
    start, stop = sorted((min(start, len(rows)), min(stop, len(rows))))
    expected = {key: table[key] for key in sorted(table)[start:stop]}
    assert held(rows.view(start, stop)) == expected
    part = rows.copied(start, stop)
    assert held(part) == expected
    assert part is rows or part.keys.base is None


@given(st.lists(tables, min_size=1, max_size=4))
def test_joined_rows_come_one_behind_the_other(parts: list[dict[int, Partition]]) -> None:
    joined = PartitionRows.joined([made(table) for table in parts])
    assert joined.keys.tolist() == [key for table in parts for key in sorted(table)]
    named = [(topic_id_of(key), key) for key in joined.keys.tolist()]
    assert list(zip(joined.topics_at(np.arange(len(joined))), joined.keys, strict=True)) == named


def test_columns_are_padded_to_the_widest_row() -> None:
    wide = replace(ONE, replicas=(1, 2, 7), directories=(LOST_DIR,) * 3, isr=(7, 1, 2), leader=-1)
    rows = made({0: ONE, 1: wide})
    assert rows.width == 3
    assert rows.cell_count == 2 * (FIXED + 2 * 3)
    assert rows.leaders.tolist() == [2, -1]
    assert rows.replicas.tolist() == [[1, 2, -1], [1, 2, 7]]
    assert rows.isr.tolist() == [[2, -1, -1], [7, 1, 2]]
    assert rows.partition_ids.tolist() == [0, 1]
    assert rows.offline_and_imbalanced_counts() == (1, 2)


def test_those_with_eligible_replicas_are_found() -> None:
    table = {
        key_of(1, 0): replace(ONE, eligible_leader_replicas=(1,)),
        key_of(1, 1): replace(ONE, removing_replicas=(1,)),
        key_of(2, 0): replace(ONE, last_known_elr=(1,)),
    }
    assert made(table).has_eligible.tolist() == [True, False, True]


def test_those_at_the_end_of_their_epochs_are_found() -> None:
    table = {
        0: replace(ONE, leader_epoch=2**31 - 1),
        1: ONE,
        2: replace(ONE, partition_epoch=2**31 - 1),
    }
    assert made(table).has_last_epoch.tolist() == [True, False, True]


def test_arrays_cannot_be_written() -> None:
    rows = made({0: ONE})
    with pytest.raises(ValueError, match="read-only"):
        rows.leaders[0] = 3


def test_rows_of_topics_get_their_numbers() -> None:
    topic_ids = [TopicId(letter * 16) for letter in (b"t", b"u")]
    rows = PartitionRows.made(
        [(key_of(at, partition_id), topic_ids[at], ONE) for at in (0, 1) for partition_id in (0, 1)]
    )
    moved = with_number(rows, 7)
    assert moved.keys.tolist() == [
        key_of(at, partition_id) for at in (7, 8) for partition_id in (0, 1)
    ]
    assert [moved.partition(row) for row in range(4)] == [ONE] * 4
    assert moved.topic_ids == tuple(topic_ids)
