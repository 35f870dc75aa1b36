"""Numbers of a scrape, read off a controller that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.features.levels import METADATA_VERSION
from quorate.controller.image import LOG_BEGIN, LogPosition, MetadataDelta, MetadataImage
from quorate.controller.partitions.partition import UNASSIGNED_DIR, Partition
from quorate.controller.partitions.store import PartitionStore
from quorate.controller.partitions.tree import PartitionTree
from quorate.controller.topics.image import TopicsDelta
from quorate.records.ids import UUID_BYTES, Epoch, Millis, Offset, TopicId
from quorate.server.driver.observers import Observers
from quorate.server.metrics.controller_gauges import (
    applied_offset_gauges,
    driver_gauges,
    image_gauges,
)
from quorate.server.metrics.definitions import CONTROLLER_METERS
from quorate.server.metrics.raft_meters import RaftMeters
from quorate.telemetry.histograms import Histogram
from tests.unit.server.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


def count(value: object) -> int:
    assert isinstance(value, Histogram)
    return value.count


async def test_what_a_controller_did_is_in_its_numbers(open_stack: Open) -> None:
    meters = RaftMeters()
    stack = await open_stack(snapshot_bytes=1, observers=Observers(meters))
    await stack.register()
    await stack.create("a", "b")
    await eventually(lambda: stack.snapshotter.newest is not None)
    driver, application = stack.driver, stack.application
    values = {**driver_gauges(driver, meters), **application.metrics()}
    assert values.keys() <= CONTROLLER_METERS.keys()
    end = driver.store.log.end.offset
    assert values["append_records_total"] == values["log_end_offset"] == end
    assert values["fetch_records_total"] == 0
    # A leader change, the first metadata, the registration, its end, and two topics together.
    assert count(values["commit_latency_seconds"]) == 5
    assert count(values["election_latency_seconds"]) == 1
    assert values["last_election_won_timestamp_seconds"] == meters.last_won
    assert list(meters.last_won) == ["startup"]
    assert count(values["flush_duration_seconds"]) == driver.access.flushing.times.count > 0
    assert values["event_queue_operations_started_total"] == 3
    assert count(values["event_queue_processing_time_seconds"]) == 3
    assert values["event_queue_size"] == 0
    assert count(values["snapshot_generation_duration_seconds"]) >= 1
    assert values["latest_snapshot_generated_bytes"]
    counts = ("global_topics", "global_partitions", "active_brokers")
    assert [values[name] for name in counts] == [2, 2, 1]
    zero = ("offline_partitions", "preferred_replica_imbalance", "metadata_log_lag")
    assert [values[name] for name in zero] == [0, 0, 0]
    assert values["last_applied_record_offset"] == values["last_committed_record_offset"] == end - 1


async def test_a_restart_replays_or_loads_and_counts_it(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.create("a")
    await stack.close()
    again = await open_stack()
    assert count(again.application.metrics()["replay_duration_seconds"]) >= 1
    await again.close()
    full = await open_stack(snapshot_bytes=1)
    await eventually(lambda: full.snapshotter.newest is not None)
    await full.snapshotter.abandon()
    await full.close()
    loaded = await open_stack()
    assert loaded.application.metrics()["handle_load_snapshot_total"] == 1
    assert "latest_snapshot_generated_age_seconds" not in loaded.application.metrics()


async def test_a_request_that_cannot_be_decided_is_an_error(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    monkeypatch.setattr("quorate.controller.topics.create_topics._Creation", None)
    with pytest.raises(Exception, match="could not decide"):
        await stack.create("a")
    assert stack.application.metrics()["metadata_errors_total"] == 1


@pytest.mark.parametrize(
    ("end", "committed", "told", "lag_s", "behind"),
    [
        *((7, 7, 7, 0.0, 0), (7, 9, 9, 2.5, 2), (7, None, None, 0.0, 0), (0, 9, 9, 0.0, 9)),
        # The leader reports more than this log has; a log may have been committed further.
        *((7, 7, 1807, 2.5, 1800), (7, None, 9, 2.5, 2), (7, 9, 8, 2.5, 2), (7, 7, 6, 0.0, 0)),
    ],
)
def test_metadata_lags_only_behind_what_is_known_to_be_committed(
    end: int, committed: int | None, told: int | None, lag_s: float, behind: int
) -> None:
    position = LogPosition(Offset(end), Epoch(1), 1000 if end else 0)
    high_watermark = None if committed is None else Offset(committed)
    reported = None if told is None else Offset(told)
    numbers = applied_offset_gauges(
        position, high_watermark, reported, wall_ms=3500, silence_ms=Millis(0)
    )
    assert numbers["last_applied_record_lag_seconds"] == lag_s
    assert numbers["metadata_log_lag"] == behind
    assert numbers["last_committed_record_offset"] == end + behind - 1
    assert numbers["last_applied_record_offset"] == end - 1
    assert numbers["last_applied_record_timestamp_seconds"] == (1.0 if end else 0.0)


@pytest.mark.parametrize(
    ("end", "wall_ms", "silence_ms", "lag_s"),
    [
        # All that is known is applied, or nothing is.
        *((9, 3500, 0, 0.0), (9, 3500, 5000, 5.0), (0, 3500, 5000, 5.0)),
        # The longer one counts; a clock that was set back takes nothing away.
        *((7, 3500, 2100, 2.5), (7, 3500, 5000, 5.0), (7, 500, 2100, 2.1), (7, 500, 0, 0.0)),
    ],
)
def test_metadata_lags_for_as_long_as_no_leader_answers(
    end: int, wall_ms: int, silence_ms: int, lag_s: float
) -> None:
    position = LogPosition(Offset(end), Epoch(1), 1000 if end else 0)
    numbers = applied_offset_gauges(
        position, Offset(9), None, wall_ms=wall_ms, silence_ms=Millis(silence_ms)
    )
    assert numbers["last_applied_record_lag_seconds"] == lag_s
    # Nothing is known of what is committed since.
    assert numbers["metadata_log_lag"] == 9 - end


async def test_the_lag_is_that_of_what_the_core_knows(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    end = stack.application.controller.end_offset
    monkeypatch.setattr(
        "quorate.raft.core.RaftCore.known_high_watermark", property(lambda _: Offset(end + 1800))
    )
    monkeypatch.setattr(
        "quorate.raft.last_contact.LastContact.silence_ms", lambda *_: Millis(1 << 50)
    )
    numbers = stack.application.metrics()
    assert numbers["metadata_log_lag"] == 1800
    assert numbers["last_applied_record_lag_seconds"] == (1 << 50) / 1000


async def test_elections_of_the_past_are_not_counted_after_a_restart(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = TopicsDelta.add

    def elected(delta: TopicsDelta, name: str, topic_id: TopicId) -> None:
        """A tally in which each topic has brought an election of each kind."""
        add(delta, name, topic_id)
        delta.count_election(is_eligible=True)
        delta.count_election(is_eligible=False)

    monkeypatch.setattr(TopicsDelta, "add", elected)
    kinds = ("unclean_leader_elections_total", "elections_from_eligible_leader_replicas_total")

    def counted(stack: Stack) -> list[object]:
        return [stack.application.metrics()[kind] for kind in kinds]

    stack = await open_stack()
    await stack.register()
    assert counted(stack) == [0, 0]
    await stack.create("a", "b")
    assert counted(stack) == [2, 2]
    await stack.close()
    again = await open_stack()
    await again.until_active()
    assert counted(again) == [0, 0]
    await again.create("c")
    assert counted(again) == [1, 1]


def test_features_have_a_level_each() -> None:
    image = MetadataImage()
    image = MetadataImage(features=image.features.set(METADATA_VERSION, 7).set("group.version", 1))
    numbers = image_gauges(image, None)
    assert numbers["finalized_level"] == {METADATA_VERSION: 7.0, "group.version": 1.0}
    assert numbers["current_metadata_version"] == 7.0


def test_a_scrape_looks_at_no_topic_and_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    topic_id = TopicId(b"t" * UUID_BYTES)
    delta = MetadataDelta(MetadataImage())
    delta.topics.add("a", topic_id)
    topic = delta.topics.topic(topic_id)
    partition = Partition(replicas=(1, 2), isr=(2,), leader=2, directories=(UNASSIGNED_DIR,) * 2)
    for partition_id in range(3):
        delta.topics.set_partition(topic, partition_id, partition, old=None)
    image = delta.apply(LOG_BEGIN)

    def looked(*_: object) -> None:
        raise AssertionError("a scrape looked at partitions")

    for name in ("get", "count_of", "of_topic"):
        monkeypatch.setattr(PartitionStore, name, looked)
    for name in ("get", "parts_from", "parts_of", "rows_from"):
        monkeypatch.setattr(PartitionTree, name, looked)
    numbers = image_gauges(image, None)
    assert numbers["global_partitions"] == 3
    assert numbers["preferred_replica_imbalance"] == 3
    assert numbers["offline_partitions"] == 0
