"""One server call: the servicer context, messages, cancellation."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, Self

import grpc
import grpc.aio

from quorate.h2 import grpc_framing
from quorate.h2.callback_stream import CallbackDispatcher, FilterableCallbackStream
from quorate.h2.fair_queue import CURRENT_FLOW
from quorate.h2.message_buffer import MESSAGES_PER_ITERATION, MessageBuffer
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.server.response import OK, ServerResponse
from quorate.records.escaping import shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from quorate.h2.call_headers import CallDetails, Request
    from quorate.h2.callback_stream import StreamHandler
    from quorate.h2.fair_queue import Flow
    from quorate.h2.protocol.connection import Connection

log = logging.getLogger(__name__)
# Seconds without progress after which a response is dropped: its client grants no window for it.
UNSENT_S: Final = 300.0


class CallConnection(Protocol):
    """The part of a connection that its calls use."""

    connection: Connection
    peer: str
    message_bytes_max: int

    def auth_context(self) -> Mapping[str, Iterable[bytes]]: ...

    def flush_soon(self) -> None: ...

    # Schedules the calls of this connection fairly with others.
    flow: Flow
    # Returns the handler of a method, or None.
    find: Callable[[CallDetails], Awaitable[Any]]


class Requests(FilterableCallbackStream):
    """The messages of a call for its handler; closed with the call."""

    __slots__ = ("_call", "_decode", "_is_closed", "_is_wanted")

    def __init__(self, call: ServerCall, decode: Callable[[bytes], Any] | None) -> None:
        self._call = call
        self._decode = decode
        self._is_closed = False
        self._is_wanted: Callable[[Any], bool] | None = None

    async def deliver_to(self, stream_handler: StreamHandler) -> None:
        await self._call.deliver_to(stream_handler, self._decode, self._is_wanted)

    @property
    def has_message(self) -> bool:
        return not self._is_closed and self._call.has_message

    def stop_unless(self, is_wanted: Callable[[Any], bool]) -> None:
        self._is_wanted = is_wanted

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message of any service
        data = None if self._is_closed else await self._call.next_message()
        if data is None:
            raise StopAsyncIteration
        message = data if self._decode is None else self._decode(data)
        if self._is_wanted is not None and not self._is_wanted(message):
            self._is_closed = True
            raise StopAsyncIteration
        return message

    async def aclose(self) -> None:
        self._is_closed = True


class ServerCall(grpc.aio.ServicerContext[Any, Any]):
    """A call, and the context that its handler gets."""

    def __init__(
        self,
        call_connection: CallConnection,
        stream_id: int,
        request: Request,
        place: object = None,
    ) -> None:
        # For the interceptor that counts calls.
        self.place = place
        self._call_connection = call_connection
        self._connection = call_connection.connection
        self._stream_id = stream_id
        self._request = request
        self._loop = asyncio.get_running_loop()
        bytes_max, flush_soon = call_connection.message_bytes_max, call_connection.flush_soon
        self._message_buffer = MessageBuffer(
            call_connection.connection, stream_id, bytes_max=bytes_max, flush_soon=flush_soon
        )
        self._drained: asyncio.Future[None] | None = None
        self._hot: CallbackDispatcher | None = None
        self._in_turn = 0
        self._is_cancelled = False
        self._answer = ServerResponse(
            call_connection.connection, stream_id, call_connection.flush_soon
        )
        self._decode: Callable[[bytes], Any] | None = None
        self._callbacks: list[Callable[[Any], None]] = []
        self._deadline_s: float | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None

    # --- called by the connection -----------------------------------------------------------------

    def begin(self) -> None:
        """Serve the call in a task of its own."""
        if self._request.timeout_s is not None:
            self._deadline_s = self._loop.time() + self._request.timeout_s
            self._expiry = self._loop.call_at(self._deadline_s, self._expire)
        self.task = self._loop.create_task(self._call_connection.flow.meter(self._run()))

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """Take more bytes of the request."""
        self._message_buffer.feed(data, is_last=is_last)

    def drained(self) -> None:
        """Resume a writer that waited for space."""
        # The report may concern data that was sent before later data had to wait.
        if self._connection.queued(self._stream_id):
            return
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._hot is not None:
            self._hot.on_writable()

    def on_client_gone(self) -> None:
        """End the call: the client has cancelled it or disconnected."""
        self._answer.is_over = self._is_cancelled = True
        self._cancel()

    def fail(self, code: grpc.StatusCode, words: str) -> None:
        """End the call from outside of its handler, which is cancelled."""
        if not self._answer.is_over:
            self._is_cancelled = True
            self._answer.finish(code, words)
            self._cancel()

    def _cancel(self) -> None:
        # A task cancelled before its first step never stops the timer itself.
        self._stop_clock()
        if self.task is not None:
            self.task.cancel()

    def _stop_clock(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _expire(self) -> None:
        if self._answer.is_over:
            # The response is complete, but its client grants no window for it.
            self.on_client_gone()
        else:
            self.fail(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")

    # --- serving ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        CURRENT_FLOW.set(self._call_connection.flow)
        try:
            await self._serve_or_refuse()
            # A call lasts until its response has been sent: a client that reads slowly holds it.
            await self._send_rest()
        except asyncio.CancelledError as error:
            error.__traceback__ = None
            # Without a status the client would wait forever, unless it has cancelled the call
            # itself.
            self._answer.finish(grpc.StatusCode.CANCELLED, "the call was cancelled by its server")
        finally:
            self._answer.is_over = True
            self._stop_clock()
            # Data without a waiter would otherwise stay as long as its client likes.
            if self._connection.queued(self._stream_id):
                self._connection.reset(self._stream_id, H2ErrorCode.CANCEL)
                self._call_connection.flush_soon()
            self._tell_done()

    async def _serve_or_refuse(self) -> None:
        request = self._request
        try:
            if request.fault is not None:
                self._answer.finish(*request.fault, hints=request.hints)
            else:
                await self._serve()
        except grpc.aio.AbortError as error:
            # A raised exception holds the frames that it passed, and some of them hold it.
            error.__traceback__ = None
            self._answer.finish(self._answer.code, self._answer.details)
        except Exception as error:
            method = shown(request.details.method)
            # A failing handler fails at each call: a caller must not fill the log.
            about = {"repeats": ("a call has failed", method, type(error))}
            log.exception("a call of %s has failed", method, extra=about)
            # Generated servicers set a code before they raise, for what they do not implement.
            code = grpc.StatusCode.UNKNOWN if self._answer.code == OK else self._answer.code
            self._answer.finish(code, f"Unexpected {type(error)}: {error}")

    def _tell_done(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    async def _serve(self) -> None:
        handler = await self._call_connection.find(self._request.details)
        if handler is None:
            self._answer.finish(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
            return
        self._answer.encode, self._decode = (
            handler.response_serializer,
            handler.request_deserializer,
        )
        if handler.request_streaming:
            request: Any = Requests(self, self._decode)
        else:
            request = await self._only_request()
        if not handler.response_streaming:
            unary = handler.stream_unary if handler.request_streaming else handler.unary_unary
            response = await unary(request, self)
            self.send(response)
        else:
            stream = handler.stream_stream if handler.request_streaming else handler.unary_stream
            await self._give(stream(request, self))
        code = self._answer.code
        self._answer.finish(code, self._answer.details)

    async def _give(self, responses: Any) -> None:  # noqa: ANN401 - a generator or a coroutine
        if not hasattr(responses, "__aiter__"):
            await responses
            return
        async with aclosing(responses):
            async for response in responses:
                await self.write(response)

    async def _only_request(self) -> Any:  # noqa: ANN401 - a message of any service
        data = await self.next_message()
        if data is None:
            await self.abort(grpc.StatusCode.INTERNAL, "the call has no request")
        return data if self._decode is None else self._decode(data)

    @property
    def has_message(self) -> bool:
        """True if the next message of the client is complete."""
        return self._message_buffer.has_message

    async def next_message(self) -> bytes | None:
        """Return the next message of the client; None after the last."""
        try:
            return await self._message_buffer.next()
        except grpc_framing.OversizedError as error:
            self.fail(error.code, str(error))
            raise asyncio.CancelledError from None

    async def deliver_to(
        self,
        stream_handler: StreamHandler,
        decode: Callable[[bytes], Any] | None,
        is_wanted: Callable[[Any], bool] | None,
    ) -> None:
        """Pass the messages to a handler, until it has finished."""
        flow = self._call_connection.flow
        stream = self._hot = CallbackDispatcher(
            self, flow, self._message_buffer, stream_handler, decode, is_wanted
        )
        try:
            await stream.run()
        finally:
            self._hot = None

    # --- the response -----------------------------------------------------------------------------

    def send(self, response: Any) -> bool:  # noqa: ANN401 - a message of any service
        """Send a message, unless the call has ended; False if it has to wait for space."""
        return self._answer.send(response)

    async def _send_rest(self) -> None:
        """Wait until the response has been sent, as long as there is progress."""
        unsent = self._connection.queued(self._stream_id)
        while unsent and not self._is_cancelled:
            with suppress(TimeoutError):
                async with asyncio.timeout(UNSENT_S):
                    await self._room()
            before, unsent = unsent, self._connection.queued(self._stream_id)
            if unsent >= before:
                return

    async def _room(self) -> None:
        self._drained = self._loop.create_future()
        try:
            await self._drained
        finally:
            self._drained = None

    # --- the servicer context ---------------------------------------------------------------------

    async def read(self) -> Any:  # noqa: ANN401 - a message of any service
        data = await self.next_message()
        if data is None:
            return grpc.aio.EOF
        return data if self._decode is None else self._decode(data)

    async def write(self, message: Any) -> None:  # noqa: ANN401 - a message of any service
        self._in_turn += 1
        if not self.send(message):
            self._in_turn = 0
            await self._room()
        elif self._in_turn == MESSAGES_PER_ITERATION:
            self._in_turn = 0
            await asyncio.sleep(0)

    async def send_initial_metadata(self, initial_metadata: Any) -> None:  # noqa: ANN401
        self._answer.begin(tuple(initial_metadata))

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Any = (),  # noqa: ANN401
    ) -> NoReturn:
        self._answer.code, self._answer.details = code, details
        if trailing_metadata:
            self._answer.trailing = tuple(trailing_metadata)
        raise grpc.aio.AbortError

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        await self.abort(status.code, status.details, status.trailing_metadata)

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:  # noqa: ANN401
        self._answer.trailing = tuple(trailing_metadata)

    def trailing_metadata(self) -> Any:  # noqa: ANN401
        return self._answer.trailing

    def invocation_metadata(self) -> Any:  # noqa: ANN401
        return self._request.details.invocation_metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        self._answer.code = code

    def code(self) -> Any:  # noqa: ANN401 - a number where a handler has set one
        return self._answer.code

    def set_details(self, details: str) -> None:
        self._answer.details = details

    def details(self) -> str:
        return self._answer.details

    def set_compression(self, compression: grpc.Compression) -> None:
        """Messages are not compressed."""

    def disable_next_message_compression(self) -> None:
        """Messages are not compressed."""

    def peer(self) -> str:
        return self._call_connection.peer

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        return self._call_connection.auth_context()

    def peer_identity_key(self) -> str | None:
        return None

    def peer_identities(self) -> Iterable[bytes] | None:
        return None

    def time_remaining(self) -> Any:  # noqa: ANN401 - None without a deadline
        return None if self._deadline_s is None else max(0.0, self._deadline_s - self._loop.time())

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if self._answer.is_over:
            callback(self)
        else:
            self._callbacks.append(callback)

    def cancelled(self) -> bool:
        return self._is_cancelled

    def done(self) -> bool:
        return self._answer.is_over
