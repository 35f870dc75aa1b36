"""Writes, reads and replay of one controller on a real log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.topics.describe_topics import SLICE_ITEMS
from quorate.controller.topics.messages import (
    CreateTopics,
    CreateTopicsReply,
    Cursor,
    DescribeTopics,
    DescribeTopicsReply,
    ListTopics,
    NewTopic,
)
from quorate.raft.messages import (
    MembershipResponse,
    RemoveRaftVoterRequest,
)
from quorate.records.errors import ErrorCode
from quorate.records.ids import Millis, NodeId, ReplicaKey
from quorate.rpc.time_slicer import BACKGROUND_SHARE, TimeSlicer
from quorate.server.metadata import read_handler
from tests.unit.server.conftest import CALLER, CLUSTER, WAIT_S, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]


async def test_a_read_waits_for_its_offset_and_says_where_it_stands(open_stack: Open) -> None:
    stack = await open_stack()
    reached = stack.application.controller.image.position.end_offset
    with pytest.raises(ControllerApiError, match=f"stands at {reached}"):
        await stack.application.read(
            ListTopics(), CALLER, min_offset=reached + 1, current=False, timeout_ms=10
        )


async def test_a_current_read_of_the_leader_is_answered(open_stack: Open) -> None:
    assert await (await open_stack()).topic_count() == 0


async def test_a_committed_write_can_be_read_from_its_offset(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.register()
    reply = await stack.create("a", "b")
    assert isinstance(reply, CreateTopicsReply)
    assert [topic.error for topic in reply.topics] == [ErrorCode.NONE, ErrorCode.NONE]
    assert await stack.topic_count() == 2
    before = stack.application.controller.image
    await stack.close()
    again = await open_stack()
    assert await again.topic_count(min_offset=before.position.end_offset) == 2
    assert again.application.controller.image.topics == before.topics


async def test_what_gathered_lies_before_a_change_of_the_members(open_stack: Open) -> None:
    stack = await open_stack()
    await stack.register()
    await eventually(lambda: not stack.driver.access.flushing.is_flushing)
    start = stack.driver.store.log.end.offset
    written = stack.application.write(CreateTopics((NewTopic("a"),)), CALLER)
    assert stack.driver.store.log.end.offset == start
    key = ReplicaKey(NodeId(9), None)
    _, answer = stack.driver.submit(
        RemoveRaftVoterRequest(cluster_id=CLUSTER, voter=key, timeout_ms=Millis(1000))
    )
    assert stack.driver.store.log.end.offset > start
    assert isinstance(await answer, MembershipResponse)
    await written


async def test_a_long_answer_lets_others_run_in_between(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However fast the machine is, each unit of the work is a slice.
    monkeypatch.setattr(
        read_handler,
        "serving_pace",
        lambda clock: TimeSlicer(BACKGROUND_SHARE, slice_s=0.0, clock=clock),
    )
    stack = await open_stack()
    await stack.register()
    await stack.write(CreateTopics((NewTopic("a", 5 * SLICE_ITEMS, 1),)))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.get_running_loop().create_task(count())
    reply = await stack.application.read(
        DescribeTopics(("a",)), CALLER, min_offset=0, current=False, timeout_ms=WAIT_S * 1000
    )
    others.cancel()
    assert isinstance(reply, DescribeTopicsReply)
    assert len(reply.topics[0].partitions) == 5 * SLICE_ITEMS
    assert turns >= 4


async def test_an_answer_that_is_refused_says_why(open_stack: Open) -> None:
    stack = await open_stack()
    with pytest.raises(ControllerApiError, match="cursor's topic 'b' is none") as refused:
        await stack.application.read(
            DescribeTopics(("a",), Cursor("b")),
            CALLER,
            min_offset=0,
            current=False,
            timeout_ms=1000,
        )
    assert refused.value.error is ErrorCode.INVALID_REQUEST
