"""Limits how many requests are being received at once; evicts the slowest (slowloris).

While a message is being received gRPC allocates memory for all of it, up to the largest that a
listener accepts; before that a call holds a window of 64 KiB. So only a few requests are received
at the same time, and others wait. A request that is complete when its call begins, as our own
transport can tell, does not wait. A well-behaved client's request arrives within a moment. A
partially received request is ended when others wait and it has exceeded its time, the oldest first.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.h2.callback_stream import FilterableCallbackStream
from quorate.h2.peer_name import client_of
from quorate.rpc.limits.admission import resource_exhausted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

T = TypeVar("T")
TOO_SLOW: Final = "TOO_SLOW"


class EmptyCallError(Exception):
    """A call ended before it had a request."""


async def _first(requests: AsyncIterator[T]) -> T:
    """Return the first request.

    Raises EmptyCallError, also if an interceptor has ended the requests before it.
    """
    try:
        return await anext(requests)
    except StopAsyncIteration:
        raise EmptyCallError from None


class _InboundRequest:
    """One request that is being received, or is about to be."""

    __slots__ = ("began", "is_over", "timeout")

    def __init__(self, began: float) -> None:
        self.began = began
        self.is_over = False
        self.timeout: asyncio.Timeout | None = None

    def end(self) -> None:
        self.is_over = True
        if self.timeout is not None:
            self.timeout.reschedule(0)


class InboundLimiter:
    """The requests of one kind that are being received."""

    def __init__(self, *, at_once: int, patience_s: float) -> None:
        """Receive at most `at_once` requests at a time.

        With `patience_s` 0 no request waits: the oldest is evicted as soon as there is one too
        many.
        """
        self._at_once = at_once
        self._patience_s = patience_s
        self._receiving: dict[_InboundRequest, None] = {}
        # By client; the next client is the first.
        self._waiting: OrderedDict[str, deque[asyncio.Future[_InboundRequest]]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._receiving)

    async def receive(self, requests: AsyncIterator[T], peer: str) -> T:
        """Return the first request. Raises AdmissionError, EmptyCallError."""
        if isinstance(requests, FilterableCallbackStream) and requests.has_message:
            return await _first(requests)
        arrival = await self._turn(client_of(peer))
        try:
            if not arrival.is_over:
                async with asyncio.timeout(None) as arrival.timeout:
                    return await _first(requests)
        except TimeoutError:
            assert arrival.is_over
        finally:
            self._leave(arrival)
        raise resource_exhausted(
            TOO_SLOW,
            f"{self._at_once} requests are half-sent, and this is the oldest: send requests whole "
            "and at once, or try again later",
        )

    async def _turn(self, client: str) -> _InboundRequest:
        if len(self._receiving) >= self._at_once and not self._patience_s:
            self._end_oldest()
        if len(self._receiving) < self._at_once:
            return self._enter()
        turn: asyncio.Future[_InboundRequest] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._watch()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(turn.result())
            elif turn in (turns := self._waiting.get(client, deque())):
                turns.remove(turn)
                if not turns:
                    del self._waiting[client]
            raise

    def _enter(self) -> _InboundRequest:
        arrival = _InboundRequest(asyncio.get_running_loop().time())
        self._receiving[arrival] = None
        return arrival

    def _leave(self, arrival: _InboundRequest) -> None:
        """Start the next request: clients take turns, so one with many calls delays no other."""
        self._receiving.pop(arrival, None)
        while self._waiting and len(self._receiving) < self._at_once:
            client, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            if turns:
                self._waiting.move_to_end(client)
            else:
                del self._waiting[client]
            if not turn.done():
                turn.set_result(self._enter())

    def _watch(self) -> None:
        if self._timer is None and self._waiting:
            due = next(iter(self._receiving)).began + self._patience_s
            self._timer = asyncio.get_running_loop().call_at(due, self._end_late)

    def _end_late(self) -> None:
        """End every request that has exceeded its time while others wait."""
        self._timer = None
        since = asyncio.get_running_loop().time() - self._patience_s
        while self._waiting and next(iter(self._receiving)).began <= since:
            self._end_oldest()
        self._watch()

    def _end_oldest(self) -> None:
        # Its slot is free immediately; the task that waits for it runs later.
        arrival = next(iter(self._receiving))
        arrival.end()
        self._leave(arrival)
