from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.consensus import deciding
from quorate.controller.topics.creating import SLICE_PARTITIONS
from quorate.controller.topics.messages import CreateTopics, CreateTopicsReply, NewTopic
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch
from quorate.rpc.pace import Pace
from tests.unit.consensus.conftest import CALLER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.consensus.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]

LARGE = CreateTopics((NewTopic("large", 10 * SLICE_PARTITIONS, 1),))


async def test_a_large_request_pauses_and_the_next_waits_for_its_decision(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.consensus.deciding.AT_ONCE_S", 0)
    # However fast the machine is, each unit of the work is a slice.
    monkeypatch.setattr(deciding, "Pace", partial(Pace, slice_s=0.0))
    stack = await open_stack()
    await stack.register()
    large = stack.application.write(LARGE, CALLER)
    again = stack.application.write(LARGE, CALLER)
    turns = 0
    while stack.application.controller.is_deciding:
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 10
    first, second = await asyncio.gather(large, again)
    assert isinstance(first, CreateTopicsReply)
    assert isinstance(second, CreateTopicsReply)
    assert first.topics[0].error is ErrorCode.NONE
    assert second.topics[0].error is ErrorCode.TOPIC_ALREADY_EXISTS
    assert stack.application.controller.image.topics.partition_count == 10 * SLICE_PARTITIONS


async def test_what_is_not_decided_when_leadership_ends_has_not_happened(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.consensus.deciding.AT_ONCE_S", 0)
    stack = await open_stack()
    await stack.register()
    waiting = [stack.application.write(LARGE, CALLER) for _ in range(2)]
    before = stack.driver.progress
    assert before is not None
    stack.application.progressed(replace(before, epoch=Epoch(before.epoch + 1), is_leader=False))
    for future in waiting:
        with pytest.raises(ControllerApiError) as refused:
            await future
        assert refused.value.error is ErrorCode.NOT_CONTROLLER
        assert not refused.value.outcome_unknown


async def test_who_waited_and_how_long_each_decision_took_is_counted(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorate.consensus.deciding.AT_ONCE_S", 0)
    stack = await open_stack()
    await stack.register()
    deciding = stack.application._writing.deciding
    decided, waited = deciding.durations.count, deciding.waits.count
    writes = [stack.application.write(LARGE, CALLER) for _ in range(3)]
    assert deciding.queue_size == 3
    writes[1].cancel()
    await writes[2]
    # The first found nobody before it, and a caller that has gone is not decided on.
    assert (deciding.durations.count, deciding.waits.count) == (decided + 2, waited + 1)
    assert deciding.queue_size == 0
