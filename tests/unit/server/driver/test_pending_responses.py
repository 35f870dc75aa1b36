"""Responses that callers of the core wait for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset, ReplyToken
from quorate.server.driver.pending_responses import PendingResponses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

    from tests.unit.server.conftest import Stack

    Open = Callable[..., Awaitable[Stack]]

ONE = ReplyToken(1)
PLAIN = m.EndQuorumEpochResponse(ErrorCode.NONE, m.NOTHING_KNOWN)


def answers_of(stack: Stack) -> PendingResponses:
    return PendingResponses(stack.driver.store, stack.driver.access)


def records_of(stack: Stack) -> m.FetchResponse:
    """An answer that names the whole log."""
    log = stack.driver.store.log
    span = m.LogRange(start=log.log_start, end=Offset(log.end.offset), bytes_max=1 << 20)
    return m.FetchResponse(error=ErrorCode.NONE, leader=m.NOTHING_KNOWN, records=span)


async def test_an_answer_is_given_once_to_whoever_is_still_there(open_stack: Open) -> None:
    answers = answers_of(await open_stack())
    answer = answers.register(ONE)
    answers.complete(ONE, PLAIN)
    assert answer.result() is PLAIN
    answers.complete(ONE, PLAIN)
    gone = answers.register(ONE)
    assert answers.discard(ONE)
    assert not answers.discard(ONE)
    answers.complete(ONE, PLAIN)
    assert not gone.done()


async def test_records_come_from_memory_at_once_and_else_from_the_disk(
    open_stack: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = await open_stack()
    answers = answers_of(stack)
    cached = answers.register(ONE)
    answers.complete(ONE, records_of(stack))
    monkeypatch.setattr(stack.driver.store, "cached_range", lambda _: None)
    read = answers.register(ONE)
    answers.complete(ONE, records_of(stack))
    assert (cached.done(), read.done()) == (True, False)
    response = await asyncio.wait_for(read, 60)
    assert response == cached.result()
    assert isinstance(response, m.FetchResponse)
    assert isinstance(response.records, m.FetchedBatches)
    assert response.records.data


async def test_at_the_end_nobody_gets_an_answer(open_stack: Open) -> None:
    answers = answers_of(await open_stack())
    answer = answers.register(ONE)
    answers.cancel()
    assert answer.cancelled()
    assert not answers.discard(ONE)
