"""Use of the other servers' answers while one is silent; sockets are in test_silent_servers."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, cast

import pytest

from quorate.client.controller_calls import RequestRefusedError
from quorate.client.unresponsive_servers import (
    FailoverWatch,
    LeaderReplacedError,
    UnresponsiveServers,
)
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import Epoch, NodeId
from quorate.records.voters import Endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.client.controller_calls import Address, ControllerCalls

A, B, C = ("a", 1), ("b", 2), ("c", 3)


def names(server: Address | None, epoch: int) -> m.DescribeQuorumResponse:
    """The answer of a follower that names the leader, or none."""
    ways = () if server is None else (Endpoint("GRPC", *server),)
    leader = m.LeaderInfo(None if server is None else NodeId(server[1]), Epoch(epoch), ways)
    return m.DescribeQuorumResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=leader)


def leads(node_id: int, epoch: int) -> m.DescribeQuorumResponse:
    """The answer of a leader that names no listener."""
    return m.DescribeQuorumResponse(
        error=ErrorCode.NONE, leader=m.LeaderInfo(NodeId(node_id), Epoch(epoch))
    )


class Words:
    """Says one thing after the other; after the last one the call is answered."""

    def __init__(self, *said: m.DescribeQuorumResponse | str | Exception) -> None:
        self.said = list(said)
        self.asked: list[Address] = []
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def try_describe_at(self, server: Address, _: float) -> m.DescribeQuorumResponse | str:
        self.asked.append(server)
        said = self.said.pop(0)
        if not self.said and not self.answer.done():
            asyncio.get_running_loop().call_soon(self.answer.set_result, "done")
        if isinstance(said, Exception):
            raise said
        return said

    async def call(self) -> str:
        return await self.answer


async def outcome(
    words: Words, *, epoch: int | None, is_repeatable: bool, others: Sequence[Address] = (B, C)
) -> str:
    calls = cast("ControllerCalls", words)
    known = None if epoch is None else Epoch(epoch)
    watch = FailoverWatch(calls, A, others, known, is_repeatable=is_repeatable)
    return await watch.run(words.call())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.client.unresponsive_servers.HEDGE_AFTER_S", 0.01)


@pytest.mark.parametrize("is_repeatable", [True, False])
@pytest.mark.parametrize("later", [names(C, 6), leads(2, 6)])
async def test_a_leader_of_a_later_epoch_ends_a_call(
    later: m.DescribeQuorumResponse, *, is_repeatable: bool
) -> None:
    unreadable = ValueError("leader_epoch: -1 is negative")
    nothing = ("connection refused", unreadable, names(None, 6), names(A, 5))
    words = Words(*nothing, later, "end")
    with pytest.raises(LeaderReplacedError) as replaced:
        await outcome(words, epoch=5, is_repeatable=is_repeatable)
    assert words.asked == [B, C, B, C, B]
    assert replaced.value.epoch == 6
    assert replaced.value.leader == (B if later.error is ErrorCode.NONE else C)


async def test_a_call_may_take_its_time_while_its_server_leads() -> None:
    words = Words(names(A, 5), names(A, 6), names(C, 6), names(C, 5))
    assert await outcome(words, epoch=5, is_repeatable=True) == "done"


async def test_what_may_be_repeated_goes_to_whoever_leads() -> None:
    with pytest.raises(LeaderReplacedError, match="node 3 leads epoch 5"):
        await outcome(Words(names(C, 5), "end"), epoch=None, is_repeatable=True)


async def test_another_name_of_the_same_server_ends_no_change() -> None:
    words = Words(names(C, 5), names(C, 5), names(C, 6), "end")
    with pytest.raises(LeaderReplacedError, match="node 3 leads epoch 6"):
        await outcome(words, epoch=None, is_repeatable=False)
    assert len(words.asked) == 3


async def test_who_may_not_ask_waits() -> None:
    refused = RequestRefusedError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")
    words = Words(refused)
    assert await outcome(words, epoch=5, is_repeatable=True) == "done"


async def test_where_there_is_nobody_else_the_call_is_waited_for() -> None:
    words = Words()
    asyncio.get_running_loop().call_later(0.05, words.answer.set_result, "done")
    assert await outcome(words, epoch=5, is_repeatable=True, others=()) == "done"
    assert words.asked == []


async def test_a_failure_in_the_turn_in_which_the_caller_gives_up_is_taken() -> None:
    untaken: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: untaken.append(context))
    begun, answer = asyncio.Event(), loop.create_future()

    async def call() -> None:
        begun.set()
        await answer

    watch = FailoverWatch(cast("ControllerCalls", None), A, (), None, is_repeatable=False)
    caller = asyncio.ensure_future(watch.run(call()))
    await begun.wait()
    answer.set_exception(ConnectionError("gone"))
    caller.cancel()
    # The call has failed by the time that its caller ends.
    await asyncio.wait((caller,))
    del caller
    gc.collect()
    assert untaken == []


async def test_a_call_that_fails_does_so_and_one_that_is_given_up_is_cancelled() -> None:
    words = Words()
    words.answer.set_exception(ValueError("why"))
    with pytest.raises(ValueError, match="why"):
        await outcome(words, epoch=5, is_repeatable=True)
    words = Words(names(C, 6), "end")
    with pytest.raises(LeaderReplacedError):
        await outcome(words, epoch=5, is_repeatable=True)
    assert words.answer.cancelled()


async def test_a_silent_server_is_believed_in_a_later_epoch_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quorate.client.unresponsive_servers.SILENCE_S", 3600.0)
    silent = UnresponsiveServers()
    assert not silent.has(A)
    assert not silent.is_known_stale(A, Epoch(5))
    silent.add(A, Epoch(5))
    silent.add(B, None)
    assert silent.has(A)
    assert silent.is_known_stale(A, Epoch(5))
    assert not silent.is_known_stale(A, Epoch(6))
    # The first that names it knows in which epoch it was silent.
    assert silent.is_known_stale(B, Epoch(7))
    assert not silent.is_known_stale(B, Epoch(8))
    silent.discard(A)
    assert not silent.has(A)
    monkeypatch.setattr("quorate.client.unresponsive_servers.SILENCE_S", 0.0)
    silent.add(A, Epoch(5))
    assert not silent.is_known_stale(A, Epoch(5))
    assert silent.is_known_stale(B, Epoch(7))
