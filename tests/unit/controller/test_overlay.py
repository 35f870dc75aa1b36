"""Decisions on one overlay for a batch: the same as with an image for each of them."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import pytest

from quorate.controller.brokers.messages import UnregisterBroker
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.errors import ReplayError
from quorate.controller.image import MetadataImage
from quorate.controller.overlay import WRITTEN_MAX, Overlay
from quorate.controller.slices import run_to_end
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Offset, TopicId
from quorate.records.metadata import ConfigRecord, PartitionRecord, TopicRecord
from quorate.sim.checkers.overlay_differential import RandomDecisions, Standby, require_equal
from quorate.sim.randomness import RandomSource
from tests.unit.controller.conftest import CALLER, Cluster, uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.request_types import WriteRequest
    from quorate.records.metadata import MetadataRecord
    from quorate.sim.checkers.overlay_differential import Batch

LEADERS = 6


def lead_and_lose(seed: int) -> None:
    """Brokers come and go, are heard or not; topics and settings change; batches are lost."""
    draws = RandomSource(seed, "history")
    decisions, standby = RandomDecisions(draws), Standby()
    now_ms = 0
    for epoch in range(1, LEADERS + 1):
        ways = decisions.lead(standby.image, Epoch(epoch), now_ms)
        sent: deque[Batch] = deque()
        for _ in range(draws.between(2, 16)):
            now_ms += draws.between(0, 2000)
            sent.extend(decisions.batches(ways, now_ms))
            if draws.chance(0.05):
                gathered = ways.cut(now_ms)
                controls = ways.append_controls(now_ms)
                sent.extend([controls] if gathered is None else [gathered, controls])
            last = None
            for _ in range(draws.between(0, len(sent))):
                last = sent.popleft()
                standby.replay(last)
            if last is not None:
                ways.commit(last)
                require_equal(ways.image, standby.image, "that are replayed")


@pytest.mark.parametrize("are_passes_short", [False, True])
def test_a_batch_on_one_overlay_is_decided_as_with_an_image_for_each(
    monkeypatch: pytest.MonkeyPatch, *, are_passes_short: bool
) -> None:
    if are_passes_short:
        monkeypatch.setattr("quorate.controller.partitions.leader_isr_sweep.RECORDS_SLICE", 3)
        monkeypatch.setattr("quorate.controller.partitions.leader_isr_sweep.CELLS_SLICE", 24)
        monkeypatch.setattr("quorate.controller.partitions.tree.ROWS_MAX", 2)
    seed = time.time_ns() % 1_000_000_000
    try:
        lead_and_lose(seed)
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise


def alteration(value: str) -> IncrementalAlterConfigs:
    """Set one key of all brokers."""
    change = ConfigChange("log.cleaner.threads", AlterOperation.SET, value)
    resource = ConfigResource(ResourceType.BROKER, "")
    return IncrementalAlterConfigs((ConfigAlteration(resource, (change,)),))


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda one: one.heartbeat(1), id="of-one-that-is-alive"),
        pytest.param(lambda one: one.heartbeat(1, broker_epoch=7), id="of-another-epoch"),
        pytest.param(lambda one: one.heartbeat(2, want_fence=True), id="of-one-that-stays-fenced"),
        pytest.param(lambda one: one.heartbeat(2, want_shut_down=True), id="of-one-that-may-go"),
        pytest.param(lambda one: one.registration(1, listeners=()), id="registration-refused"),
        pytest.param(lambda _: UnregisterBroker(9), id="of-nobody"),
    ],
)
def test_what_changes_no_broker_makes_no_image_of_half_a_batch(
    ask: Callable[[Cluster], WriteRequest],
) -> None:
    """Brokers are heard all the time, and an image costs more than what they ask."""
    cluster = Cluster(gathers=True)
    cluster.start_brokers(1)
    assert cluster.ask(cluster.registration(2)).error is ErrorCode.NONE
    before = cluster.image
    first = cluster.controller.decide(alteration("1"), CALLER, 0)
    assert not cluster.controller.decide(ask(cluster), CALLER, 0).records
    assert cluster.controller.expire(0) is None
    second = cluster.controller.decide(alteration("2"), CALLER, 0)
    cluster.controller.end_batch(second.end_offset)
    cluster.controller.commit(first.end_offset, timestamp_ms=1)
    assert cluster.image is before
    cluster.commit(second)
    assert cluster.image.configs.of((ResourceType.BROKER, ""))["log.cleaner.threads"] == "2"


def test_what_is_not_committed_is_seen_by_decisions_and_not_by_readers() -> None:
    cluster = Cluster(gathers=True)
    cluster.start_brokers(1, 2, 3)
    before = cluster.image
    created = cluster.controller.decide(CreateTopics((NewTopic("a"),)), CALLER, 0)
    again = cluster.controller.decide(CreateTopics((NewTopic("a"),)), CALLER, 0)
    assert "exists already" in again.reply.topics[0].message  # type: ignore[union-attr]
    assert cluster.image is before
    cluster.controller.end_batch(created.end_offset)
    assert cluster.image is before
    cluster.commit(created)
    assert cluster.image.topics.by_name_or_none("a") is not None


def test_a_creation_that_pauses_goes_on_where_the_batch_was_cut_meanwhile() -> None:
    cluster = Cluster(gathers=True)
    cluster.start_brokers(1, 2, 3)
    controller = cluster.controller
    first = controller.decide(CreateTopics((NewTopic("b.c"),)), CALLER, 0)
    request = CreateTopics((NewTopic("d", partitions=100), NewTopic("b_c")))
    slices = controller.decide_in_slices(request, CALLER, 0)
    next(slices)
    controller.end_batch(first.end_offset)
    controller.commit(first.end_offset, timestamp_ms=1)
    decision = run_to_end(slices)
    assert isinstance(decision.reply, CreateTopicsReply)
    assert [topic.error.name for topic in decision.reply.topics] == [
        "NONE",
        "INVALID_TOPIC_EXCEPTION",
    ]
    cluster.commit(decision)
    assert cluster.image.topics.partition_count == 101


def config(name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name=name, value=value)


def partition(topic_id: TopicId, number: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number, topic_id=topic_id, replicas=(1,), isr=(1,), leader=1, leader_epoch=0,
        partition_epoch=0,
    )  # fmt: skip


def topic_of(number: int) -> list[MetadataRecord]:
    topic_id = TopicId(uuid(number))
    return [TopicRecord(name=f"t{number}", topic_id=topic_id), partition(topic_id, 0)]


def test_records_that_contradict_leave_what_was_written_before() -> None:
    overlay = Overlay(MetadataImage())
    overlay.write(topic_of(1))
    with pytest.raises(ReplayError, match="exists already"):
        overlay.write([config("x", "1"), *topic_of(1)])
    assert overlay.end_offset == 2
    assert overlay.view.topics.partition_count == 1
    assert not overlay.view.configs.of((4, ""))
    overlay.write([config("x", "2")])
    image = overlay.freeze(Offset(3), Epoch(1))
    assert image.configs.of((4, ""))["x"] == "2"
    assert image.topics.partition_count == 1
    assert image.position.end_offset == 3


def test_an_image_ends_where_it_is_asked_to_and_the_rest_stays() -> None:
    overlay = Overlay(MetadataImage())
    for number in range(3):
        overlay.write(topic_of(number))
    image = overlay.freeze(Offset(4), Epoch(1))
    assert (image.position.end_offset, image.topics.partition_count) == (4, 2)
    assert (overlay.end_offset, overlay.view.topics.partition_count) == (6, 3)
    assert "t2" in overlay.view.topics.ids
    assert "t2" not in image.topics.ids
    assert overlay.freeze(Offset(6), Epoch(1)).topics.partition_count == 3


def test_nothing_new_is_the_same_image() -> None:
    image = MetadataImage()
    overlay = Overlay(image)
    assert overlay.freeze(Offset(0), Epoch(1)) is image
    assert overlay.freeze(Offset(9), Epoch(1)) is image


def test_an_older_image_does_not_change_with_what_is_written_later() -> None:
    overlay = Overlay(MetadataImage())
    overlay.write([config("x", "1")])
    image = overlay.freeze(Offset(1), Epoch(1))
    overlay.write([config("x", "2"), *topic_of(1)])
    assert image.configs.of((4, ""))["x"] == "1"
    assert not image.topics.by_id


def test_so_much_is_written_until_there_is_an_image() -> None:
    overlay = Overlay(MetadataImage())
    assert overlay.has_room(WRITTEN_MAX)
    overlay.write([config("x", "1")])
    assert not overlay.has_room(WRITTEN_MAX)


@pytest.mark.parametrize("count", [1, 5, 200])
def test_partitions_count_before_they_are_in_a_table(count: int) -> None:
    overlay = Overlay(MetadataImage())
    topic_id = TopicId(uuid(1))
    records: list[MetadataRecord] = [TopicRecord(name="a", topic_id=topic_id)]
    records += [partition(topic_id, number) for number in range(count)]
    overlay.write(records)
    assert overlay.view.topics.partition_count == count
    overlay.write([partition(topic_id, 0)])
    assert overlay.view.topics.partition_count == count


def test_a_leader_that_gathers_keeps_one_image_for_each_batch(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(gathers=True)
    cluster.start_brokers(1)
    decisions = [
        cluster.controller.decide(CreateTopics((NewTopic(f"t{number}"),)), CALLER, 0)
        for number in range(10)
    ]
    before = cluster.image
    cluster.controller.end_batch(decisions[-1].end_offset)
    cluster.controller.commit(decisions[3].end_offset, timestamp_ms=1)
    assert cluster.image is before
    cluster.commit(decisions[-1])
    assert len(cluster.image.topics.by_id) == 10
