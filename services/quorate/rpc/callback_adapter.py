"""Runs callback-style stream handlers on grpc.aio's iterators.

On our own transport a message needs no task or queue. grpcio has iterators only: there one task
reads, and the servicer yields the replies.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import grpc.aio

from quorate.h2.callback_stream import CallbackStream, FilterableCallbackStream
from quorate.h2.message_buffer import MESSAGES_PER_ITERATION

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from quorate.h2.callback_stream import StreamHandler, StreamWriter
    from quorate.h2.fair_queue import Step


async def iter_replies(
    stream_handler: StreamHandler, requests: AsyncIterator[Any]
) -> AsyncGenerator[Any]:
    """Pass all requests to `taker`, and yield the replies that were not sent in another way."""
    if isinstance(requests, CallbackStream):
        await requests.deliver_to(stream_handler)
        return
    door = _IteratorStreamWriter(stream_handler)
    stream_handler.begin(door)
    reader = asyncio.get_running_loop().create_task(door.read(requests))
    try:
        while (reply := await door.next_reply()) is not None:
            yield reply
            stream_handler.on_writable()
    finally:
        reader.cancel()


def take_while(
    requests: AsyncIterator[Any], is_wanted: Callable[[Any], bool]
) -> AsyncIterator[Any]:
    """Return the requests before the first that is not wanted, as an iterator of the same type."""
    if isinstance(requests, FilterableCallbackStream):
        requests.stop_unless(is_wanted)
        return requests
    return _taken_while(requests, is_wanted)


async def _taken_while(
    requests: AsyncIterator[Any], is_wanted: Callable[[Any], bool]
) -> AsyncIterator[Any]:
    async for request in requests:
        if not is_wanted(request):
            return
        yield request


async def forward_responses(
    call: grpc.aio.StreamStreamCall[Any, Any],
    take: Callable[[Any], None],
    begin: Callable[[StreamWriter], None],
) -> None:
    """Pass each response of a client's call to `take`; raise the error that ends the call.

    If requests can be sent without a task, `begin` gets the stream writer for them.
    """
    if isinstance(call, CallbackStream):
        taker = _Answers(take, begin)
        try:
            await call.deliver_to(taker)
        finally:
            taker.close()
        return
    while (answer := await call.read()) is not grpc.aio.EOF:
        take(answer)


class _Answers:
    """The handler of the responses of a client's call."""

    def __init__(self, take: Callable[[Any], None], begin: Callable[[StreamWriter], None]) -> None:
        self._take = take
        self._tell_begun = begin
        self._stream_writer: StreamWriter | None = None

    def begin(self, stream_writer: StreamWriter) -> None:
        self._stream_writer = stream_writer
        self._tell_begun(stream_writer)

    def capacity(self) -> int:
        return MESSAGES_PER_ITERATION

    def on_messages(self, messages: list[Any]) -> None:
        for message in messages:
            self._take(message)

    def on_invalid_message(self, error: ValueError) -> None:
        self._finish(error)

    def on_half_close(self) -> None:
        self._finish(None)

    def _finish(self, error: ValueError | None) -> None:
        if self._stream_writer is not None:
            self._stream_writer.finish(error)

    def on_writable(self) -> None:
        """Ignore: few requests wait for space."""

    def close(self) -> None:
        """Release the writer: the call has ended, and objects that hold this one can be freed."""
        self._stream_writer = None


class _IteratorStreamWriter:
    """The stream writer of a handler between two iterators; it holds one reply at a time."""

    def __init__(self, stream_handler: StreamHandler) -> None:
        self._stream_handler = stream_handler
        self._room = asyncio.Event()
        self._news = asyncio.Event()
        self._reply: Any = None
        self._has_finished = False
        self._error: BaseException | None = None

    async def read(self, requests: AsyncIterator[Any]) -> None:
        taker = self._stream_handler
        try:
            async for request in requests:
                while not taker.capacity():
                    self._room.clear()
                    await self._room.wait()
                taker.on_messages([request])
        except ValueError as error:
            taker.on_invalid_message(error)
        except Exception as error:
            self.finish(error)
        else:
            taker.on_half_close()

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

    def schedule(self, step: Step) -> None:
        while step(math.inf):
            pass

    def finish(self, error: BaseException | None = None) -> None:
        self._has_finished, self._error = True, error
        self._news.set()
