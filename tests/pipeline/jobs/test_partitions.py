"""Histories of partitions equal those that a loop over the same records finds."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from quorate.pipeline.jobs import partitions
from quorate.records.ids import TopicId
from quorate.records.metadata import PartitionRecord, TopicRecord
from tests.pipeline.jobs import plain
from tests.pipeline.jobs.histories import START_MS, Entry, History, frame_of
from tests.pipeline.jobs.rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from quorate.records.metadata import MetadataRecord
    from tests.pipeline.jobs.plain import State


@pytest.fixture(scope="module")
def history() -> History:
    return History(time.time_ns() % 1_000_000_000, 400)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, history: History) -> Mapping[str, DataFrame]:
    frame = frame_of(spark, history.entries, shuffled=random.Random(history.seed))
    return partitions.tables(frame, {})


def key(state: State) -> tuple[object, ...]:
    return state.topic, state.topic_id, state.partition


def test_every_state_of_every_partition(tables: Mapping[str, DataFrame], history: History) -> None:
    found = tables["history"]
    last = plain.last_ms(history.entries)
    expected = [
        (
            *key(state),
            *plain.interval(state.start, state.end, last),
            state.leader,
            state.leader_epoch,
            state.replicas,
            state.isr,
            state.adding,
            state.removing,
            changed(before, state),
        )
        for of_one in plain.states(history.entries)
        for before, state in zip([None, *of_one], of_one, strict=False)
    ]
    assert found.schema.simpleString() == partitions.HISTORY_SCHEMA.simpleString()
    assert rows_of(found) == sorted(expected, key=repr), f"seed {history.seed}"


def changed(before: State | None, state: State) -> tuple[str, ...]:
    if before is None:
        return ()
    return tuple(
        word
        for word, differs in (
            ("leader", before.leader != state.leader),
            ("isr", set(before.isr) != set(state.isr)),
            ("replicas", set(before.replicas) != set(state.replicas)),
            (
                "reassignment",
                set(before.adding) != set(state.adding)
                or set(before.removing) != set(state.removing),
            ),
        )
        if differs
    )


def test_when_replicas_were_missing(tables: Mapping[str, DataFrame], history: History) -> None:
    found = tables["under_replicated"]
    expected = []
    for of_one in plain.states(history.entries):
        for run in runs(of_one, lambda state: len(state.isr) < len(state.replicas)):
            missing = {r for state in run for r in state.replicas if r not in state.isr}
            expected.append(
                (
                    *key(run[0]),
                    *plain.interval(run[0].start, run[-1].end, plain.last_ms(history.entries)),
                    min(len(state.isr) for state in run),
                    tuple(sorted(missing)),
                    any(state.adding or state.removing for state in run),
                )
            )
    assert found.schema.simpleString() == partitions.UNDER_REPLICATED_SCHEMA.simpleString()
    assert rows_of(found) == sorted(expected, key=repr), f"seed {history.seed}"


def test_when_nobody_led(tables: Mapping[str, DataFrame], history: History) -> None:
    found = tables["offline"]
    expected = []
    for of_one in plain.states(history.entries):
        for run in runs(of_one, lambda state: state.leader == -1):
            first, last = of_one.index(run[0]), of_one.index(run[-1])
            expected.append(
                (
                    *key(run[0]),
                    *plain.interval(run[0].start, run[-1].end, plain.last_ms(history.entries)),
                    of_one[first - 1].leader if first else None,
                    of_one[last + 1].leader if last + 1 < len(of_one) else None,
                )
            )
    assert found.schema.simpleString() == partitions.OFFLINE_SCHEMA.simpleString()
    assert rows_of(found) == sorted(expected, key=repr), f"seed {history.seed}"


def runs(states: list[State], holds: Callable[[State], bool]) -> list[list[State]]:
    """Neighbouring states for which something holds."""
    found: list[list[State]] = []
    is_open = False
    for state in states:
        if holds(state):
            if not is_open:
                found.append([])
            found[-1].append(state)
        is_open = holds(state)
    return found


def test_unclean_elections(tables: Mapping[str, DataFrame], history: History) -> None:
    found = tables["unclean"]
    expected = [
        (
            *key(after),
            *after.start,
            after.leader_epoch,
            after.leader,
            before.isr,
            after.isr,
            after.marked,
        )
        for of_one in plain.states(history.entries)
        for before, after in pairwise(of_one)
        if after.unclean
    ]
    assert found.schema.simpleString() == partitions.UNCLEAN_SCHEMA.simpleString()
    assert rows_of(found) == sorted(expected, key=repr), f"seed {history.seed}"


def test_how_often_topics_changed(tables: Mapping[str, DataFrame], history: History) -> None:
    found = tables["churn"]
    topics: dict[str, list[list[State]]] = {}
    for of_one in plain.states(history.entries):
        topics.setdefault(of_one[0].topic_id, []).append(of_one)
    expected = []
    for topic_id, of_topic in topics.items():
        pairs = [pair for states in of_topic for pair in pairwise(states)]
        expected.append(
            (
                of_topic[0][0].topic,
                topic_id,
                of_topic[0][-1].end is not None,
                len(of_topic),
                sum(a.leader != b.leader for a, b in pairs),
                sum(b.unclean for _, b in pairs),
                sum(bool(set(a.isr) - set(b.isr)) for a, b in pairs),
                sum(bool(set(b.isr) - set(a.isr)) for a, b in pairs),
                sum(begins_move(a, b) for a, b in pairs),
            )
        )
    assert found.schema.simpleString() == partitions.CHURN_SCHEMA.simpleString()
    assert rows_of(found) == sorted(expected, key=repr), f"seed {history.seed}"


def begins_move(before: State, after: State) -> bool:
    if before.adding or before.removing:
        return False
    return bool(after.adding or after.removing) or set(before.replicas) != set(after.replicas)


def test_partitions_of_one_topic_are_in_several_parts_and_counted_together(
    spark: SparkSession,
) -> None:
    topic_id = TopicId(bytes(range(16)))
    records: list[MetadataRecord] = [
        TopicRecord(name="large", topic_id=topic_id),
        *(_with_one_replica(topic_id, number) for number in range(24)),
    ]
    log = frame_of(spark, [Entry(at, START_MS, record) for at, record in enumerate(records)])
    events = partitions.partition_events(log)
    placed = events.rows.where("partition >= 0").select(F.spark_partition_id(), "partition")
    parts, numbers = zip(*placed.collect(), strict=True)
    assert len(set(parts)) > 1
    assert sorted(numbers) == list(range(24))
    summary = partitions.partition_summary(events)
    assert [(row.topic, row.partitions) for row in partitions.churn(summary).collect()] == [
        ("large", 24)
    ]
    assert {row.topic for row in partitions.partition_history(events).collect()} == {"large"}


def _with_one_replica(topic_id: TopicId, partition_id: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
