"""States of partitions are the same however the events are cut into windows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from quorate.pipeline.jobs.partition_states import TOPIC, SortedLists, elements_of, states_of
from tests.pipeline.log_frames import clock_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Event = dict[str, Any]

IDS = pa.list_(pa.int32())
EVENTS = pa.schema(
    [
        ("topic_id", pa.string()),
        ("topic", pa.string()),
        ("removed_offset", pa.int64()),
        ("removed", pa.timestamp("us", "UTC")),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("leader_epoch", pa.int32()),
        ("raises_epoch", pa.bool_()),
        ("leader", pa.int32()),
        ("replicas", IDS),
        ("isr", IDS),
        ("adding_replicas", IDS),
        ("removing_replicas", IDS),
        ("eligible_replicas", IDS),
        ("is_recovering", pa.bool_()),
    ]
)


def event(topic_id: str, partition: int, offset: int, **said: Any) -> Event:  # noqa: ANN401
    """An event of one record with these fields; the rest is null."""
    told = {"raises_epoch": False, "is_recovering": False, "timestamp": offset * 1000} | said
    return {"topic_id": topic_id, "partition": partition, "offset": offset} | told


def whole(topic_id: str, partition: int, offset: int, **said: Any) -> Event:  # noqa: ANN401
    """A PartitionRecord."""
    state = {
        "leader": 1,
        "leader_epoch": 5,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "adding_replicas": [],
        "removing_replicas": [],
        "eligible_replicas": [],
    }
    return event(topic_id, partition, offset, **state | said)


def windows(events: Sequence[Event], sizes: Iterator[int]) -> Iterator[pa.RecordBatch]:
    """The events in batches of those sizes."""
    at = 0
    while at < len(events):
        size = next(sizes)
        yield pa.RecordBatch.from_pylist(list(events[at : at + size]), schema=EVENTS)
        at += size


def told(events: Sequence[Event], sizes: Iterator[int]) -> list[Event]:
    """Every state, with what was found out about it."""
    found = []
    for states in states_of(windows(events, sizes)):
        rows = states.filled.to_pylist()
        next_offsets = states.following("offset", "removed_offset").to_pylist()
        found += [
            rows[at]
            | {
                "end_offset": next_offsets[at],
                "has_previous": bool(states.has_previous[at]),
                "leader_differs": bool(states.leader_differs[at]),
                "isr_differs": bool(states.isr_differs[at]),
            }
            for at in states.told
        ]
    return found


def all_at_once() -> Iterator[int]:
    while True:
        yield 1_000_000


def history(seed: int) -> list[Event]:
    """Events of some topics, sorted as Spark sorts them."""
    draw = random.Random(seed)
    events: list[Event] = []
    offset = 0
    for topic_id in "abcd":
        if draw.random() < 0.8:
            events.append(event(topic_id, TOPIC, offset, topic=f"t-{topic_id}"))
        if draw.random() < 0.5:
            events.append(event(topic_id, TOPIC, 10_000, removed_offset=10_000, removed=9))
        for partition in range(draw.randint(0, 3)):
            for number in range(draw.choice((1, 2, 3, 30))):
                offset += 1
                make = whole if number == 0 and draw.random() < 0.8 else event
                events.append(make(topic_id, partition, offset, **change(draw)))
    return events


def change(draw: random.Random) -> Event:
    """A random PartitionChangeRecord."""
    said: Event = {}
    if draw.random() < 0.6:
        said["isr"] = draw.sample((1, 2, 3), draw.randint(0, 3))
    if draw.random() < 0.5:
        said |= {"leader": draw.choice((-1, 1, 2, 3)), "raises_epoch": True}
    if draw.random() < 0.2:
        said["replicas"] = draw.sample((1, 2, 3, 4), 3)
    if draw.random() < 0.2:
        said["eligible_replicas"] = draw.sample((1, 2, 3), draw.randint(0, 2))
    return said


@pytest.mark.parametrize("size", [1, 2, 3, None])
def test_states_are_the_same_in_windows_of_any_size(size: int | None) -> None:
    seed = clock_seed()
    events = history(seed)
    draw = random.Random(seed + 1)
    sizes = iter(lambda: size or draw.randint(1, 9), 0)
    assert told(events, sizes) == told(events, all_at_once())


def test_what_a_record_does_not_say_stays_and_ends_with_the_partition() -> None:
    events = [
        event("a", TOPIC, 0, topic="t"),
        whole("a", 0, 1),
        event("a", 0, 5, leader=2, raises_epoch=True),
        event("a", 0, 6, isr=[2]),
        event("a", 1, 7, isr=[3]),
        event("b", 0, 8, leader=3, raises_epoch=True),
    ]
    found = told(events, all_at_once())
    keys = ("topic", "offset", "end_offset", "leader", "leader_epoch", "replicas", "isr")
    assert [tuple(state[key] for key in keys) for state in found] == [
        ("t", 1, 5, 1, 5, [1, 2, 3], [1, 2, 3]),
        ("t", 5, 6, 2, 6, [1, 2, 3], [1, 2, 3]),
        ("t", 6, None, 2, 6, [1, 2, 3], [2]),
        ("t", 7, None, None, None, None, [3]),
        (None, 8, None, 3, None, None, None),
    ]


def test_the_last_state_of_a_topic_that_is_removed_ends_there() -> None:
    events = [
        event("a", TOPIC, 0, topic="t"),
        event("a", TOPIC, 9, removed_offset=9, removed=9),
        whole("a", 0, 1),
        event("a", 0, 3, isr=[1]),
    ]
    assert [state["end_offset"] for state in told(events, iter([1] * 9))] == [3, 9]


def test_lists_differ_by_their_elements_whatever_their_order() -> None:
    rows = [[1, 2], [2, 1], [2, 3], [2], [2], None, None, [], [-7], [7], [1, 1, 2], [1, 2, 2]]
    lists = SortedLists(pa.array(rows, IDS))
    differs = lists.differs()
    assert differs.tolist() == [
        *[False, False, True, True, False],
        *[True, False, True, True, True, True, True],
    ]
    gains, losses = lists.gains_and_losses(differs)
    assert [at for at, is_so in enumerate(gains) if is_so] == [2, 8, 9, 10]
    assert [at for at, is_so in enumerate(losses) if is_so] == [2, 3, 9, 10]
    assert elements_of(lists.keys).tolist() == [
        number for row in rows for number in sorted(row or [])
    ]


def test_elements_that_another_list_lacks() -> None:
    replicas = SortedLists(pa.array([[3, 1, 2], [1], None], IDS))
    isr = SortedLists(pa.array([[2], [1], [1]], IDS))
    missing = replicas.without(isr, replicas.lengths >= 0)
    assert ((missing >> 32).tolist(), elements_of(missing).tolist()) == ([0, 0], [1, 3])
