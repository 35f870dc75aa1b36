"""A controller becomes active and steps down."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.brokers.messages import RegisterBrokerReply
from quorate.controller.topics.messages import (
    CreateTopics,
    NewTopic,
)
from quorate.raft import api
from quorate.raft.identity.second_quorum import PROOFS
from quorate.raft.messages import (
    ProposalResponse,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import UUID_BYTES, Epoch, NodeId, Offset
from quorate.server.host import Host
from tests.unit.server.conftest import CALLER, REGISTRATION, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from quorate.records.ids import Millis
    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_who_lost_leadership_refuses_writes_and_replays(open_stack: Open) -> None:
    stack = await open_stack()
    application = stack.application
    progress = stack.driver.progress
    assert progress is not None
    lost = api.PublishProgress(
        role="follower",
        epoch=Epoch(progress.epoch + 1),
        leader_id=None,
        is_leader=False,
        epoch_start=None,
        high_watermark=progress.high_watermark,
    )
    application.on_progress(lost)
    with pytest.raises(ControllerApiError, match="not active") as refused:
        await application.write(CreateTopics((NewTopic("a"),)), CALLER)
    assert refused.value.error is ErrorCode.NOT_CONTROLLER


async def test_lost_leadership_leaves_appended_writes_open(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.register()
    written = stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
    stack.application.drain()
    unsent = stack.application.write(CreateTopics((NewTopic("b"),)), CALLER)
    before = stack.driver.progress
    assert before is not None
    stack.application.on_progress(replace(before, epoch=Epoch(before.epoch + 1), is_leader=False))
    errors = [written.exception(), unsent.exception()]
    assert [getattr(error, "outcome_unknown", None) for error in errors] == [True, False]


async def test_a_batch_that_stands_elsewhere_than_it_was_decided_for_ends_leadership(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decisions on it rest on offsets that no other replica has."""
    stack = await open_stack()
    await stack.register()
    asked: list[api.Event] = []
    monkeypatch.setattr(stack.driver, "deliver", asked.append)
    written = stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
    stack.application.drain()
    (proposed,) = asked
    assert isinstance(proposed, api.RecordsProposed)
    leader = stack.driver.core.replica.leader_info
    answer = ProposalResponse(
        error=ErrorCode.NONE,
        leader=leader,
        base_offset=Offset(1 << 20),
        last_offset=Offset(1 << 20),
    )
    stack.application.on_response(proposed.token, answer)
    assert not stack.application.controller.is_active
    assert isinstance(asked[-1], api.ResignRequested)
    assert getattr(written.exception(), "outcome_unknown", None) is True


async def test_who_gave_up_awaits_the_answer_for_what_it_proposed(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stand where the next decision thinks to be, which would count as committed."""
    stack = await open_stack()
    await stack.register()
    await eventually(lambda: not stack.driver.access.flushing.is_flushing)
    asked: list[api.Event] = []
    monkeypatch.setattr(stack.driver, "deliver", asked.append)
    written = stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
    stack.application.drain()
    (proposed,) = asked
    assert isinstance(proposed, api.RecordsProposed)
    stack.application.on_disk_stalled()
    assert getattr(written.exception(), "outcome_unknown", None) is True
    stack.application.on_log_changed()
    assert not stack.application.controller.is_active
    leader = stack.driver.core.replica.leader_info
    refusal = ProposalResponse(error=ErrorCode.INVALID_REQUEST, leader=leader)
    stack.application.on_response(proposed.token, refusal)
    assert stack.application.controller.is_active


async def test_nothing_is_acknowledged_that_is_behind_what_was_proposed_before_a_disk_hung(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    await stack.register()
    await eventually(lambda: not stack.driver.access.flushing.is_flushing)
    driver = stack.driver
    asked: list[api.Event] = []
    with monkeypatch.context() as patched:
        patched.setattr(driver, "deliver", asked.append)
        stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
        stack.application.drain()
        stack.application.on_disk_stalled()
        stack.application.on_log_changed()
    for event in asked:
        driver.deliver(event)
    await eventually(lambda: stack.application.controller.is_active)
    await stack.create("b")
    assert await stack.topic_count() == 2


async def without_leadership(stack: Stack) -> api.PublishProgress:
    """Broker 1 is unfenced and the controller active no more; the progress with which it was."""
    await stack.register()
    driver = stack.driver
    await eventually(lambda: not driver.access.flushing.is_flushing)
    led = driver.progress
    assert led is not None
    stack.application.on_progress(_lost(led))
    return led


def _lost(led: api.PublishProgress) -> api.PublishProgress:
    return replace(led, epoch=Epoch(led.epoch + 1), is_leader=False)


async def test_leadership_that_is_lost_while_it_begins_leaves_no_tick(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    led = await without_leadership(stack)
    step = stack.driver.core.step

    def resigns_first(event: api.Event, now_ms: Millis) -> api.Update:
        update = step(event, now_ms)
        if isinstance(event, api.BrokerKRaftVersions):
            update = replace(update, effects=(*update.effects, _lost(led)))
        return update

    activation = stack.application._activation
    activation._brokers = None
    monkeypatch.setattr(stack.driver.core, "step", resigns_first)
    activation.begin(led.epoch)
    assert not stack.application.controller.is_active
    assert stack.application._write_handler.periodic_tasks._ticking is None


async def test_sessions_begin_with_the_clock_that_they_are_judged_by(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop stands for a minute after sessions began, and before the first tick was set."""
    stack = await open_stack()
    led = await without_leadership(stack)
    activation, expiry = (
        stack.application._activation,
        stack.application._write_handler.periodic_tasks,
    )
    now_ms = stack.driver.host.monotonic_ms()
    times = iter([now_ms])
    monkeypatch.setattr(Host, "monotonic_ms", lambda _: next(times, now_ms + 60_000))
    activation.begin(led.epoch)
    assert stack.application.controller.is_active
    expiry._tick()
    expiry._due()
    assert not stack.application.controller.image.brokers.by_id[1].registration.fenced
    assert expiry._awaited is None


async def test_after_a_pause_no_second_process_takes_the_place_of_a_broker(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its request is read before any tick has seen the pause, and before the first heartbeat."""
    stack = await open_stack()
    await stack.register()
    now_ms = stack.driver.host.monotonic_ms()
    monkeypatch.setattr(Host, "monotonic_ms", lambda _: now_ms + 61_000)
    second = replace(REGISTRATION, incarnation_id=b"n" * UUID_BYTES)
    reply = await stack.write(second)
    assert isinstance(reply, RegisterBrokerReply)
    assert reply.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION


async def test_while_there_is_another_quorum_a_leader_takes_no_writes(open_stack: Open) -> None:
    """The core's tests cover its evidence of a second quorum (rule `sole_voter_conflict`)."""
    stack = await open_stack()
    application, replica = stack.application, stack.driver.core.replica
    before = stack.driver.progress
    assert before is not None
    application.on_progress(replace(before, epoch=Epoch(before.epoch + 1), is_leader=False))
    for _ in range(PROOFS):
        replica.second_quorum.prove(NodeId(7), Epoch(5), "its log diverges")

    application.on_progress(before)
    # What is committed is replayed in the next turn of the loop.
    await asyncio.sleep(0)
    application.tick()

    assert not application.controller.is_active
    with pytest.raises(ControllerApiError, match=r"node 7, .* leads another quorum") as refused:
        await application.write(CreateTopics((NewTopic("a"),)), CALLER)
    assert refused.value.error is ErrorCode.NOT_CONTROLLER
    assert refused.value.leader is not None
    assert refused.value.leader.leader_id is None

    replica.second_quorum.take_back(NodeId(7))
    application.tick()

    assert application.controller.is_active
