from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.controller.partitions import (
    CHUNK_ROWS,
    LOST_DIR,
    MIGRATING_DIR,
    UNASSIGNED_DIR,
    Partition,
    PartitionTable,
    select_rows,
)
from quorate.records.ids import DirectoryId, format_uuid

if TYPE_CHECKING:
    from quorate.controller.partitions import Bits, Chunk

ONE = Partition(replicas=(1, 2), isr=(2,), leader=2, directories=(UNASSIGNED_DIR,) * 2)


def chunks_of(table: PartitionTable) -> list[Chunk]:
    chunks: list[Chunk] = []

    def keep(chunk: Chunk) -> Bits:
        chunks.append(chunk)
        return chunk.present

    table.select(keep)
    return chunks


ids = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)
directories = st.sampled_from(
    [UNASSIGNED_DIR, LOST_DIR, MIGRATING_DIR, DirectoryId(b"\x01" * 15 + b"\x00")]
)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    replicas = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple))
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


places = st.sampled_from([0, 1, 2, 5, CHUNK_ROWS - 1, CHUNK_ROWS, 2 * CHUNK_ROWS + 3])
tables = st.dictionaries(places, partitions(), max_size=5)


@given(steps=st.lists(tables, max_size=4))
def test_a_table_holds_what_was_put_into_it(steps: list[dict[int, Partition]]) -> None:
    table, expected = PartitionTable(), dict[int, Partition]()
    for step in steps:
        table = table.with_changes(step)
        expected |= step
    assert dict(table.items()) == expected
    assert [partition_id for partition_id, _ in table.items()] == sorted(expected)
    assert len(table) == len(expected)
    assert all(table.get(partition_id) == expected.get(partition_id) for partition_id in range(8))
    assert table == PartitionTable().with_changes(expected)


@given(before=tables, change=tables)
def test_an_older_table_never_changes(
    before: dict[int, Partition], change: dict[int, Partition]
) -> None:
    table = PartitionTable().with_changes(before)
    table.with_changes(change)
    assert dict(table.items()) == before


@given(left=tables, right=tables)
def test_tables_are_equal_exactly_when_their_partitions_are(
    left: dict[int, Partition], right: dict[int, Partition]
) -> None:
    tables_equal = PartitionTable().with_changes(left) == PartitionTable().with_changes(right)
    assert tables_equal is (left == right)


def test_a_table_equals_nothing_else() -> None:
    table = PartitionTable().with_changes({0: ONE})
    assert table != "table"
    assert chunks_of(table)[0] != "chunk"
    with pytest.raises(TypeError):
        hash(table)


def test_partitions_outside_the_table_are_none() -> None:
    table = PartitionTable().with_changes({0: ONE})
    assert [table.get(partition_id) for partition_id in (-1, 1, CHUNK_ROWS)] == [None] * 3


def test_a_scan_finds_partitions_in_every_chunk() -> None:
    other = replace(ONE, leader=7)
    wanted = [1, CHUNK_ROWS - 1, CHUNK_ROWS, 3 * CHUNK_ROWS + 4]
    changes = dict.fromkeys(range(0, 3 * CHUNK_ROWS + 5, 3), ONE) | dict.fromkeys(wanted, other)
    table = PartitionTable().with_changes(changes)

    def led_by_seven(chunk: Chunk) -> Bits:
        bits: Bits = chunk.leaders == 7
        return bits

    assert table.select(led_by_seven) == wanted
    assert table.select(lambda chunk: np.zeros(len(chunk), dtype=np.bool_)) == []


def test_rows_of_many_chunks_are_looked_at_as_one() -> None:
    wide = replace(ONE, replicas=(1, 2, 7), isr=(1, 2, 7))
    other = replace(ONE, leader=7)
    tables = [
        PartitionTable().with_changes(changes)
        for changes in ({0: other, 1: ONE}, {0: wide}, {}, {1: ONE, 3: other}, {0: wide, 1: other})
    ]
    chunks = [chunk for table in tables for _, chunk in table.chunks_from(0)]
    looked_at: list[int] = []

    def led_by_seven(chunk: Chunk) -> Bits:
        looked_at.append(len(chunk))
        bits: Bits = chunk.leaders == 7
        return bits

    assert select_rows(chunks, led_by_seven) == [(0, 0), (2, 3), (3, 1)]
    # Once for each width, whatever the number of chunks.
    assert sorted(looked_at) == [3, 6]
    assert select_rows([], led_by_seven) == []


def test_chunks_begin_with_that_of_the_partition_asked_for() -> None:
    table = PartitionTable().with_changes({0: ONE, 2 * CHUNK_ROWS: ONE})
    begins = [begin for begin, _ in table.chunks_from(CHUNK_ROWS + 1)]
    assert begins == [CHUNK_ROWS, 2 * CHUNK_ROWS]
    assert list(table.chunks_from(3 * CHUNK_ROWS)) == []


def test_columns_show_the_partitions_of_a_chunk() -> None:
    other = Partition(replicas=(3,), isr=(), leader=-1, eligible_leader_replicas=(3,))
    table = PartitionTable().with_changes({0: ONE, 2: other})
    seen: list[list[object]] = []

    def look(chunk: Chunk) -> Bits:
        seen.append(
            [
                chunk.leaders.tolist(),
                chunk.replicas.tolist(),
                chunk.isr.tolist(),
                chunk.isr_sizes.tolist(),
                chunk.present.tolist(),
                chunk.eligible,
            ]
        )
        with pytest.raises(ValueError, match="read-only"):
            chunk.leaders[0] = 9
        return chunk.present

    assert table.select(look) == [0, 2]
    assert seen == [
        [
            [2, -1, -1],
            [[1, 2], [-1, -1], [3, -1]],
            [[2, -1], [-1, -1], [-1, -1]],
            [1, -1, 0],
            [True, False, True],
            {2: (3,)},
        ]
    ]


def test_only_partitions_that_exist_are_picked() -> None:
    table = PartitionTable().with_changes({0: ONE, 2: ONE})
    assert list(table.pick([2, 1, 0, 9])) == [(2, ONE), (0, ONE)]


def test_a_change_copies_only_the_chunks_that_it_touches() -> None:
    table = PartitionTable().with_changes({0: ONE, CHUNK_ROWS: ONE})
    changed = table.with_changes({CHUNK_ROWS: replace(ONE, leader=1)})
    before, after = chunks_of(table), chunks_of(changed)
    assert before[0] is after[0]
    assert before[1] is not after[1]


def test_reserved_directories_have_kafkas_names() -> None:
    assert [format_uuid(one) for one in (UNASSIGNED_DIR, LOST_DIR, MIGRATING_DIR)] == [
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "AAAAAAAAAAAAAAAAAAAAAg",
    ]


def test_a_table_prints_its_partitions() -> None:
    table = PartitionTable().with_changes({0: ONE})
    assert repr(table) == f"PartitionTable({{0: {ONE!r}}})"
