"""Writes of one controller on a real log: decided, gathered, answered when committed."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.brokers.messages import BrokerHeartbeat
from quorate.controller.topics.messages import (
    CreateTopics,
    CreateTopicsReply,
    DeleteTopics,
    DeleteTopicsReply,
    NewTopic,
)
from quorate.raft import api
from quorate.raft.messages import (
    LeaderInfo,
    LogRange,
    ReadResponse,
)
from quorate.records.batch import iter_batches
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, Offset
from tests.unit.server.conftest import CALLER, WAIT_S, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container

    from quorate.controller.decision import Decision
    from quorate.controller.request_types import Sender
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_an_answer_without_records_needs_no_flush(open_stack: Open) -> None:
    reply = await (await open_stack()).create("a")
    assert isinstance(reply, CreateTopicsReply)
    assert [topic.error for topic in reply.topics] == [ErrorCode.INVALID_REPLICATION_FACTOR]


@pytest.mark.parametrize("leads", [True, False])
async def test_a_refusal_is_told_once_a_majority_has_said_who_leads(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch, *, leads: bool
) -> None:
    stack = await open_stack()
    asked: list[api.Event] = []
    monkeypatch.setattr(stack.driver, "deliver", asked.append)
    refused = stack.application.write(DeleteTopics(("nothing",)), CALLER)
    (read,) = asked
    assert isinstance(read, api.ReadRequested)
    await asyncio.sleep(0)
    assert not refused.done()
    answer = ReadResponse(ErrorCode.NONE, LeaderInfo(NodeId(1), Epoch(1)), Offset(9))
    if not leads:
        leader = LeaderInfo(NodeId(2), Epoch(2))
        answer = ReadResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader, None)
    stack.application.on_response(read.token, answer)
    if leads:
        reply = await refused
        assert isinstance(reply, DeleteTopicsReply)
        assert reply.topics[0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        with pytest.raises(ControllerApiError, match="may not lead any more") as told:
            await refused
        assert (told.value.error, told.value.outcome_unknown) == (ErrorCode.NOT_CONTROLLER, False)


async def test_a_refusal_that_is_not_confirmed_any_more_is_none(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    with monkeypatch.context() as patched:
        patched.setattr(stack.driver, "deliver", lambda _: None)
        refused = stack.application.write(DeleteTopics(("nothing",)), CALLER)
    await stack.close()
    with pytest.raises(ControllerApiError, match="stopped"):
        await refused


async def test_writes_of_one_turn_share_a_batch(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.register()
    await eventually(lambda: not stack.driver.access.flushing.is_flushing)
    start = stack.driver.store.log.end.offset
    futures = [
        stack.application.write(CreateTopics((NewTopic(name),)), CALLER) for name in ("a", "b", "c")
    ]
    await asyncio.gather(*futures)
    end = stack.driver.store.log.end.offset
    data = stack.driver.store.read_range(LogRange(start=start, end=end, bytes_max=1 << 20))
    assert [header.record_count for _, header in iter_batches(data)] == [end - start]


async def test_writes_that_come_before_a_commit_share_the_next_batch(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.register()
    start = stack.driver.store.log.end.offset
    first = stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
    stack.application.drain()
    middle = stack.driver.store.log.end.offset
    late = [
        stack.application.write(CreateTopics((NewTopic(name),)), CALLER) for name in ("b", "c", "d")
    ]
    assert stack.driver.store.log.end.offset == middle
    await asyncio.gather(first, *late)
    end = stack.driver.store.log.end.offset
    data = stack.driver.store.read_range(LogRange(start=start, end=end, bytes_max=1 << 20))
    counts = [header.record_count for _, header in iter_batches(data)]
    assert counts == [middle - start, end - middle]


async def test_a_decision_that_raises_refuses_its_one_request(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stack = await open_stack()
    await stack.register()
    before = stack.application.controller.image

    def decide(*_: object) -> None:
        raise OverflowError("a defect")

    with monkeypatch.context() as patched:
        patched.setattr("quorate.controller.topics.create_topics._Creation", decide)
        with pytest.raises(ControllerApiError, match="CreateTopics: OverflowError") as refused:
            await stack.create("a")
    assert refused.value.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not refused.value.outcome_unknown
    (line,) = [record for record in caplog.records if record.exc_info]
    assert line.repeats == ("CreateTopics", OverflowError)  # type: ignore[attr-defined]
    assert stack.driver.exit_reason is None
    assert stack.application.controller.image == before
    reply = await stack.create("a")
    assert isinstance(reply, CreateTopicsReply)
    assert reply.topics[0].error is ErrorCode.NONE


async def test_a_silent_broker_is_fenced_in_slices_and_others_write_in_between(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.controller.partitions.leader_isr_sweep.RECORDS_SLICE", 2)
    stack = await open_stack()
    await stack.register()
    await stack.create(*(f"topic-{number}" for number in range(12)))
    before = stack.driver.store.log.end.offset
    controller = stack.application.controller
    brokers = controller.image.brokers.by_id
    epoch = brokers[1].registration.broker_epoch
    expire = controller.expire
    decided: list[tuple[Offset, Offset]] = []
    committed: list[Offset | None] = []

    def noting(now_ms: int, waiting: Container[Sender]) -> Decision | None:
        decision = expire(now_ms, waiting)
        if decision is not None and decision.values:
            decided.append((decision.base_offset, decision.end_offset))
            committed.append(stack.driver.high_watermark)
            delete = DeleteTopics((f"topic-{len(decided)}",))
            asyncio.get_running_loop().call_soon(stack.application.write, delete, CALLER)
        return decision

    monkeypatch.setattr(controller, "expire", noting)
    fence = BrokerHeartbeat(
        broker_id=1, broker_epoch=epoch, current_metadata_offset=Offset(0), want_fence=True
    )
    await stack.write(fence)

    def leaders() -> set[int]:
        topics = controller.image.topics
        partitions = (topics.partition(topic_id, 0) for topic_id in topics.by_id)
        return {partition.leader for partition in partitions if partition is not None}

    await eventually(lambda: leaders() == {-1})
    assert len(decided) > 1
    for (_, end), high_watermark in zip(decided, committed[1:], strict=False):
        assert high_watermark is not None
        assert high_watermark >= end
    # Each of the writes lies between two slices.
    assert all(later > end for (_, end), (later, _) in itertools.pairwise(decided))
    assert decided[0][0] > before


async def test_a_heartbeat_counts_when_it_comes_whatever_becomes_of_its_caller(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.server.metadata.decision_executor.INLINE_BUDGET_S", 0)
    stack = await open_stack()
    await stack.register()
    controller = stack.application.controller
    epoch = controller.image.brokers.by_id[1].registration.broker_epoch
    ends_ms = controller.wake_at_ms
    assert ends_ms is not None
    creation = CreateTopics((NewTopic("large", 1_000, 1),))
    large = stack.application.write(creation, CALLER)
    assert controller.is_deciding
    monkeypatch.setattr(stack.driver.host, "monotonic_ms", lambda: ends_ms - 1)
    beat = BrokerHeartbeat(broker_id=1, broker_epoch=epoch, current_metadata_offset=Offset(0))
    stack.application.write(beat, CALLER).cancel()
    assert controller.wake_at_ms == ends_ms - 1 + WAIT_S * 1000
    monkeypatch.undo()
    await large
