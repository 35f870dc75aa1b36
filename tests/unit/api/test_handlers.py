"""Responses and rejections of the handlers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.api.handlers import ControllerApiError
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from quorate.records.voters import Endpoint

if TYPE_CHECKING:
    from quorate.api.handlers import PendingAnswer


async def test_a_future_is_an_answer() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    answer: PendingAnswer[int] = future
    told: list[int] = []
    answer.add_done_callback(lambda done: told.append(done.result()))
    asyncio.get_running_loop().call_soon(future.set_result, 7)
    assert await answer == 7
    assert answer.done()
    assert told == [7]


def test_a_refusal_says_whether_something_may_have_been_done() -> None:
    hint = LeaderInfo(NodeId(2), Epoch(5), (Endpoint("GRPC", "two", 9094),))
    error = ControllerApiError(ErrorCode.NOT_CONTROLLER, "ask the leader", leader=hint)
    assert (str(error), error.leader, error.outcome_unknown) == ("ask the leader", hint, False)
