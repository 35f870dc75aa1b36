"""Half-sent requests: a limited number, and the oldest makes room for those that wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import grpc
import pytest

from quorate.h2.callback_stream import FilterableCallbackStream
from quorate.rpc.limits.admission import AdmissionError
from quorate.rpc.limits.inbound_limiter import TOO_SLOW, EmptyCallError, InboundLimiter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from quorate.h2.callback_stream import StreamHandler


class HalfSent:
    """A request whose end comes when the test says so."""

    def __init__(self, inbound_limiter: InboundLimiter, peer: str = "a") -> None:
        self._end = asyncio.Event()
        self.asked = False
        self.task: asyncio.Task[bytes] = asyncio.ensure_future(
            inbound_limiter.receive(self._requests(), peer)
        )

    async def _requests(self) -> AsyncIterator[bytes]:
        self.asked = True
        await self._end.wait()
        yield b"whole"

    async def whole(self) -> bytes:
        self._end.set()
        return await self.task


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def whole() -> AsyncIterator[bytes]:
    yield b"whole"


async def refused(half: HalfSent) -> None:
    with pytest.raises(AdmissionError, match="send requests whole and at once") as told:
        await half.task
    assert told.value.refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert told.value.refusal.reason == TOO_SLOW


async def test_the_oldest_makes_room_at_once_for_peers() -> None:
    arrivals = InboundLimiter(at_once=2, patience_s=0)
    oldest, second = HalfSent(arrivals), HalfSent(arrivals)
    await turns()
    assert await arrivals.receive(whole(), "b") == b"whole"
    await refused(oldest)
    assert await second.whole() == b"whole"
    assert not len(arrivals)


async def test_a_burst_waits_its_turn_and_nobody_is_ended() -> None:
    arrivals = InboundLimiter(at_once=2, patience_s=1000)
    halves = [HalfSent(arrivals) for _ in range(6)]
    await turns()
    assert [half.asked for half in halves] == [True, True, False, False, False, False]
    for half in halves:
        assert await half.whole() == b"whole"
    assert not len(arrivals)


async def test_whoever_has_had_his_time_makes_room_for_those_who_wait() -> None:
    arrivals = InboundLimiter(at_once=1, patience_s=0.001)
    first, second, third = (HalfSent(arrivals) for _ in range(3))
    await refused(first)
    await refused(second)
    await turns()
    assert len(arrivals) == 1
    assert await third.whole() == b"whole"


async def test_many_calls_of_one_client_delay_no_other() -> None:
    arrivals = InboundLimiter(at_once=1, patience_s=1000)
    first, *many = (HalfSent(arrivals, f"ipv4:10.0.0.1:{port}") for port in range(5))
    await turns()
    other = HalfSent(arrivals, "ipv4:10.0.0.2:1")
    await turns()
    for half in (first, many[0], other, *many[1:]):
        assert half.asked
        assert await half.whole() == b"whole"
        await turns()
    assert not len(arrivals)


class Here(FilterableCallbackStream):
    """Requests of our own transport, which knows what has come."""

    def __init__(self, *, has_message: bool, is_wanted: bool = True) -> None:
        self._has_message = has_message
        self._left = [b"whole"] if is_wanted else []

    @property
    def has_message(self) -> bool:
        return self._has_message

    async def deliver_to(self, stream_handler: StreamHandler) -> None:
        raise AssertionError

    def stop_unless(self, is_wanted: Callable[[Any], bool]) -> None:
        raise AssertionError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


async def test_a_request_that_is_here_whole_waits_for_nobody() -> None:
    arrivals = InboundLimiter(at_once=1, patience_s=1000)
    half = HalfSent(arrivals)
    await turns()
    assert await arrivals.receive(Here(has_message=True), "b") == b"whole"
    late = asyncio.ensure_future(arrivals.receive(Here(has_message=False), "b"))
    await turns()
    assert not late.done()
    await half.whole()
    assert await late == b"whole"


async def test_one_that_gives_up_while_it_waits_leaves_nothing() -> None:
    arrivals = InboundLimiter(at_once=1, patience_s=1000)
    first, second, third = (HalfSent(arrivals) for _ in range(3))
    await turns()
    second.task.cancel()
    await turns()
    assert await first.whole() == b"whole"
    assert await third.whole() == b"whole"
    assert not len(arrivals)


async def test_a_call_without_a_request_is_told_so() -> None:
    async def nothing() -> AsyncIterator[bytes]:
        for _ in range(0):
            yield b""

    with pytest.raises(EmptyCallError):
        await InboundLimiter(at_once=1, patience_s=1).receive(nothing(), "a")


@pytest.mark.parametrize("has_message", [True, False])
async def test_requests_that_a_guard_has_ended_before_the_first_are_none(
    *, has_message: bool
) -> None:
    arrivals = InboundLimiter(at_once=1, patience_s=1000)
    with pytest.raises(EmptyCallError):
        await arrivals.receive(Here(has_message=has_message, is_wanted=False), "b")
    assert not len(arrivals)
