"""Replies and reads that wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quorate.api.handlers import ControllerApiError
from quorate.controller.brokers.messages import UnregisterBrokerReply
from quorate.raft.messages import LeaderInfo
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId, Offset
from quorate.records.voters import Endpoint
from quorate.server.metadata.deferred_replies import (
    REFUSALS_A_TURN,
    DeferredReplies,
    OffsetWaiters,
    Refusals,
    fail_request,
    not_controller,
)

if TYPE_CHECKING:
    from quorate.controller.request_types import WriteReply

INFO = LeaderInfo(NodeId(2), Epoch(5), (Endpoint("GRPC", "b", 9094),))
REPLY = UnregisterBrokerReply()


def future() -> asyncio.Future[WriteReply]:
    return asyncio.get_running_loop().create_future()


def test_who_does_not_lead_names_the_leader() -> None:
    error = not_controller(INFO, "no")
    assert (error.error, error.leader) == (ErrorCode.NOT_CONTROLLER, INFO)


async def test_a_reply_waits_for_the_high_watermark() -> None:
    held, first, second = DeferredReplies(), future(), future()
    held.defer(Offset(3), REPLY, first)
    held.defer(Offset(5), REPLY, second)
    held.release(Offset(4))
    assert (first.done(), second.done(), len(held)) == (True, False, 1)


@pytest.mark.rule("stream_responses")
async def test_lost_leadership_leaves_the_outcome_open_unless_nothing_was_appended() -> None:
    held, appended, unsent = DeferredReplies(), future(), future()
    held.defer(Offset(3), REPLY, appended)
    held.defer(Offset(5), REPLY, unsent)
    Refusals().begin(INFO, *held.clear(unsent_from=Offset(3)))
    errors = [appended.exception(), unsent.exception()]
    assert all(isinstance(error, ControllerApiError) for error in errors)
    assert [getattr(error, "outcome_unknown", None) for error in errors] == [True, False]
    assert len(held) == 0


async def test_many_are_refused_over_many_turns() -> None:
    refusals = Refusals()
    first = [future() for _ in range(2 * REFUSALS_A_TURN + 1)]
    second = [future() for _ in range(REFUSALS_A_TURN)]
    refusals.begin(INFO, first, ())
    # The next leadership ends before all of the last one's are refused.
    refusals.begin(INFO, (), second)
    both, turns = (*first, *second), 1
    while not both[-1].done():
        assert sum(each.done() for each in both) == turns * REFUSALS_A_TURN
        await asyncio.sleep(0)
        turns += 1
    assert turns == 4
    assert [getattr(each.exception(), "outcome_unknown", None) for each in both] == (
        [True] * len(first) + [False] * len(second)
    )


async def test_who_has_hung_up_is_refused_nothing() -> None:
    waiting, gone = future(), future()
    gone.cancel()
    for one in (waiting, gone):
        fail_request(one, not_controller(INFO, "no"))
    assert isinstance(waiting.exception(), ControllerApiError)
    assert gone.cancelled()


async def test_a_read_waits_until_its_offset_is_reached() -> None:
    arrivals = OffsetWaiters()
    waiting = asyncio.ensure_future(arrivals.wait(Offset(7)))
    await asyncio.sleep(0)
    arrivals.reached(Offset(6))
    assert not waiting.done()
    arrivals.reached(Offset(7))
    await waiting
    arrivals.reached(Offset(8))
