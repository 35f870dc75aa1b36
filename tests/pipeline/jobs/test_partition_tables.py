"""Tables of partitions are the same however their states are cut into windows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs.partition_states import TOPIC
from quorate.pipeline.jobs.partition_tables import (
    CHURN,
    OFFLINE,
    UNDER_REPLICATED,
    history,
    summary,
)
from tests.pipeline.jobs import test_partition_states as events_of
from tests.pipeline.jobs.test_partition_states import all_at_once, event, whole, windows
from tests.pipeline.log_frames import clock_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from tests.pipeline.jobs.test_partition_states import Event

    Make = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def rows(make: Make, events: Sequence[Event], sizes: Iterator[int]) -> list[dict[str, Any]]:
    return [row for batch in make(windows(events, sizes)) for row in batch.to_pylist()]


def table(name: str, events: Sequence[Event]) -> list[dict[str, Any]]:
    """The rows of one table of the summary."""
    schema = {"under_replicated": UNDER_REPLICATED, "offline": OFFLINE, "churn": CHURN}[name]
    return [
        {column: row[column] for column in schema.names}
        for row in rows(summary, events, all_at_once())
        if row["table"] == name
    ]


@pytest.mark.parametrize("make", [history, summary])
@pytest.mark.parametrize("size", [1, 2, 3, None])
def test_tables_are_the_same_in_windows_of_any_size(make: Make, size: int | None) -> None:
    seed = clock_seed()
    events = events_of.history(seed)
    draw = random.Random(seed + 1)
    sizes = iter(lambda: size or draw.randint(1, 9), 0)
    expected = rows(make, events, all_at_once())
    assert sorted(map(repr, rows(make, events, sizes))) == sorted(map(repr, expected))


def test_what_lasts_over_several_states_is_one_interval() -> None:
    events = [
        event("a", TOPIC, 0, topic="t"),
        whole("a", 0, 1, leader=1),
        event("a", 0, 2, isr=[1, 2]),
        event("a", 0, 3, isr=[2], leader=-1, raises_epoch=True, adding_replicas=[4]),
        event("a", 0, 4, isr=[2, 1, 3], leader=2, raises_epoch=True),
        whole("a", 1, 5, isr=[]),
    ]
    assert [
        (row["partition"], row["start_offset"], row["end_offset"], row["isr_size_min"])
        for row in table("under_replicated", events)
    ] == [(0, 2, 4, 1), (1, 5, None, 0)]
    assert [row["missing"] for row in table("under_replicated", events)] == [[1, 3], [1, 2, 3]]
    assert [row["reassigning"] for row in table("under_replicated", events)] == [True, False]
    (offline,) = table("offline", events)
    assert (offline["start_offset"], offline["end_offset"]) == (3, 4)
    assert (offline["last_leader"], offline["next_leader"]) == (1, 2)
    (churn,) = table("churn", events)
    assert churn == {
        "topic": "t",
        "topic_id": "a",
        "removed": False,
        "partitions": 2,
        "leader_changes": 2,
        "unclean_elections": 0,
        "isr_shrinks": 2,
        "isr_expands": 1,
        "reassignments": 1,
    }
