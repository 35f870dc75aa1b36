"""Tables of partitions are the same however their states are cut into windows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs.partition_states import TOPIC
from quorate.pipeline.jobs.partition_tables import (
    CHURN,
    OFFLINE,
    UNCLEAN,
    UNDER_REPLICATED,
    history,
    summary,
)
from tests.pipeline.jobs import test_partition_states
from tests.pipeline.jobs.test_partition_states import all_at_once, event, whole, windows
from tests.pipeline.log_frames import clock_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from tests.pipeline.jobs.test_partition_states import Event

    Make = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

SCHEMAS = {
    "under_replicated": UNDER_REPLICATED,
    "offline": OFFLINE,
    "unclean": UNCLEAN,
    "churn": CHURN,
}


def rows(make: Make, events: Sequence[Event], sizes: Iterator[int]) -> list[dict[str, Any]]:
    return [row for batch in make(windows(events, sizes)) for row in batch.to_pylist()]


def table(name: str, events: Sequence[Event]) -> list[dict[str, Any]]:
    """The rows of one table of the summary."""
    schema = SCHEMAS[name]
    return [
        {column: row[column] for column in schema.names}
        for row in rows(summary, events, all_at_once())
        if row["table"] == name
    ]


@pytest.mark.parametrize("make", [history, summary])
@pytest.mark.parametrize("size", [1, 2, 3, None])
def test_tables_are_the_same_in_windows_of_any_size(make: Make, size: int | None) -> None:
    seed = clock_seed()
    events = test_partition_states.history(seed)
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


def unclean(*events: Event) -> list[tuple[Any, ...]]:
    """Offset, epoch, leader, ISRs and mark of the unclean elections in what becomes of a topic."""
    columns = ("offset", "epoch", "leader", "isr_before", "isr_after", "by_recovery_state")
    told = [event("a", TOPIC, 0, topic="t"), *events]
    found = [tuple(row[column] for column in columns) for row in table("unclean", told)]
    # The count by topic is of the same elections.
    assert sum(row["unclean_elections"] for row in table("churn", told)) == len(found)
    return found


def elected(offset: int, leader: int, **said: Any) -> Event:  # noqa: ANN401
    """A change that names a leader."""
    return event("a", 0, offset, leader=leader, raises_epoch=True, **said)


def test_an_unclean_election_is_one_that_the_record_marks_or_the_isr_shows() -> None:
    assert unclean(
        whole("a", 0, 1, leader=1, isr=[1]),
        elected(2, -1),
        elected(3, 2, isr=[2], is_recovering=True),
        elected(4, -1),
        # It recovers already, so that Kafka does not mark it again.
        elected(5, 3, isr=[3]),
        event("b", 0, 6, isr=[1]),
        event("b", 0, 7, leader=2, raises_epoch=True, isr=[2], is_recovering=True),
    ) == [
        (3, 7, 2, [1], [2], True),
        (5, 9, 3, [2], [3], False),
        (7, None, 2, [1], [2], True),
    ]


def test_leaders_who_were_in_sync_or_eligible_or_come_with_a_reassignment_are_clean() -> None:
    assert (
        unclean(
            whole("a", 0, 1, leader=1, isr=[1, 2]),
            elected(2, 2, isr=[2]),
            event("a", 0, 3, isr=[], eligible_replicas=[2, 3]),
            elected(4, 3, isr=[3], eligible_replicas=[2]),
            elected(5, 4, isr=[4], replicas=[4]),
        )
        == []
    )


def test_the_isr_before_is_unknown_where_the_log_begins_with_the_election() -> None:
    assert unclean(elected(1, 2, isr=[2], is_recovering=True), elected(2, -1)) == [
        (1, None, 2, None, [2], True)
    ]
