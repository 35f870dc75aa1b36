"""A controller becomes active and steps down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.topics.messages import (
    CreateTopics,
    NewTopic,
)
from quorate.raft import api
from quorate.raft.messages import (
    ProposalResponse,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, Offset
from tests.unit.consensus.conftest import CALLER, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.consensus.conftest import Stack

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
    application.progressed(lost)
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
    stack.application.progressed(replace(before, epoch=Epoch(before.epoch + 1), is_leader=False))
    errors = [written.exception(), unsent.exception()]
    assert [getattr(error, "outcome_unknown", None) for error in errors] == [True, False]


async def test_a_batch_that_stands_elsewhere_than_it_was_decided_for_ends_leadership(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was decided on it rests on offsets that nobody else has."""
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
    stack.application.answered(proposed.token, answer)
    assert not stack.application.controller.is_active
    assert isinstance(asked[-1], api.ResignRequested)
    assert getattr(written.exception(), "outcome_unknown", None) is True


async def test_who_gave_up_awaits_the_answer_for_what_it_proposed(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stand where the next decision thinks to be, which would count as committed."""
    stack = await open_stack()
    await stack.register()
    await eventually(lambda: not stack.driver.access.flushing.is_under_way)
    asked: list[api.Event] = []
    monkeypatch.setattr(stack.driver, "deliver", asked.append)
    written = stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
    stack.application.drain()
    (proposed,) = asked
    assert isinstance(proposed, api.RecordsProposed)
    stack.application.disk_hangs()
    assert getattr(written.exception(), "outcome_unknown", None) is True
    stack.application.advance()
    assert not stack.application.controller.is_active
    leader = stack.driver.core.replica.leader_info
    refusal = ProposalResponse(error=ErrorCode.INVALID_REQUEST, leader=leader)
    stack.application.answered(proposed.token, refusal)
    assert stack.application.controller.is_active


async def test_nothing_is_acknowledged_that_is_behind_what_was_proposed_before_a_disk_hung(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    await stack.register()
    await eventually(lambda: not stack.driver.access.flushing.is_under_way)
    driver = stack.driver
    asked: list[api.Event] = []
    with monkeypatch.context() as patched:
        patched.setattr(driver, "deliver", asked.append)
        stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
        stack.application.drain()
        stack.application.disk_hangs()
        stack.application.advance()
    for event in asked:
        driver.deliver(event)
    await eventually(lambda: stack.application.controller.is_active)
    await stack.create("b")
    assert await stack.topic_count() == 2
