"""Handlers by callback, on whichever transport: on our own without a task or queue for a message.

gRPC's own library has iterators only: there one task reads, and the servicer yields the replies.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from quorate.h2.hot_stream import HandsOver

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from quorate.h2.hot_stream import Taker


async def replies_of(taker: Taker, requests: AsyncIterator[Any]) -> AsyncGenerator[Any]:
    """Hand over all requests, and yield the replies that have not been sent in another way."""
    if isinstance(requests, HandsOver):
        await requests.hand_to(taker)
        return
    door = _IteratorDoor(taker)
    taker.begin(door)
    reader = asyncio.get_running_loop().create_task(door.read(requests))
    try:
        while (reply := await door.next_reply()) is not None:
            yield reply
            taker.drained()
    finally:
        reader.cancel()


def taken_while(
    requests: AsyncIterator[Any], is_wanted: Callable[[Any], bool]
) -> AsyncIterator[Any]:
    """The requests up to the first of which this is false, in the shape that they have."""
    if isinstance(requests, HandsOver):
        requests.only_while(is_wanted)
        return requests
    return _taken_while(requests, is_wanted)


async def _taken_while(
    requests: AsyncIterator[Any], is_wanted: Callable[[Any], bool]
) -> AsyncIterator[Any]:
    async for request in requests:
        if not is_wanted(request):
            return
        yield request


class _IteratorDoor:
    """The door of a taker between two iterators. One reply at a time is on its way."""

    def __init__(self, taker: Taker) -> None:
        self._taker = taker
        self._room = asyncio.Event()
        self._news = asyncio.Event()
        self._reply: Any = None
        self._has_finished = False
        self._error: BaseException | None = None

    async def read(self, requests: AsyncIterator[Any]) -> None:
        taker = self._taker
        try:
            async for request in requests:
                while not taker.takes_more():
                    self._room.clear()
                    await self._room.wait()
                taker.received(request)
        except ValueError as error:
            taker.broken(error)
        except Exception as error:
            self.finish(error)
        else:
            taker.half_closed()

    async def next_reply(self) -> Any:  # noqa: ANN401 - a message of any service
        while self._reply is None:
            if self._error is not None:
                raise self._error
            if self._has_finished:
                return None
            self._news.clear()
            await self._news.wait()
        reply, self._reply = self._reply, None
        return reply

    def reply(self, message: Any) -> bool:  # noqa: ANN401 - a message of any service
        self._reply = message
        self._news.set()
        return False

    def resume(self) -> None:
        self._room.set()

    def finish(self, error: BaseException | None = None) -> None:
        self._has_finished, self._error = True, error
        self._news.set()
