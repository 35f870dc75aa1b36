"""One client call: messages sent and received, status."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from quorate.h2 import grpc_framing
from quorate.h2.callback_stream import CallbackDispatcher, CallbackStream
from quorate.h2.client.call_result import NO_STATUS, CallResult, status_of_reset
from quorate.h2.fair_queue import UNSHARED
from quorate.h2.message_buffer import MessageBuffer
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.header_codec import block_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator

    from quorate.h2.callback_stream import StreamHandler
    from quorate.h2.client.protocol import ClientProtocol
    from quorate.h2.protocol.header_codec import Fields

_Code = grpc.StatusCode
_OVER: Final = "the call is over"
_EXPIRED: Final = "Deadline Exceeded"


class ResponseDecodeError(grpc_framing.OversizedError):
    """A response that is not one of its method."""


class Method:
    """The headers and serializers for the calls of one method."""

    __slots__ = ("decode", "encode", "head", "path")

    def __init__(
        self,
        path: str,
        encode: Callable[[Any], bytes] | None,
        decode: Callable[[bytes], Any] | None,
        *,
        scheme: bytes,
        authority: str,
    ) -> None:
        self.path = path
        self.encode = encode
        self.decode = decode
        self.head = block_of(
            (
                (b":method", b"POST"),
                (b":scheme", scheme),
                (b":path", path.encode()),
                (b":authority", authority.encode()),
                (b"te", b"trailers"),
                (b"content-type", b"application/grpc"),
                (b"user-agent", b"quorate"),
            )
        )


class ClientCall(
    grpc.aio.UnaryUnaryCall[Any, Any],
    grpc.aio.StreamStreamCall[Any, Any],
    CallbackStream,
):
    """A call of any kind: unary responses are awaited, streams are read."""

    def __init__(
        self,
        method: Method,
        metadata: Iterable[tuple[str, str | bytes]] | None,
        timeout_s: float | None,
        *,
        has_ended: Callable[[ClientCall], None],
    ) -> None:
        self._method = method
        self._pairs = grpc_framing.metadata_pairs(metadata or ())
        self._loop = asyncio.get_running_loop()
        self._timeout_s = timeout_s
        self._deadline_s = None if timeout_s is None else self._loop.time() + timeout_s
        self._expiry: asyncio.TimerHandle | None = None
        if timeout_s is not None:
            self._expiry = self._loop.call_later(max(0.0, timeout_s), self._expire)
        self._has_ended = has_ended
        self.link: ClientProtocol | None = None
        self.stream_id = 0
        self._message_buffer: MessageBuffer | None = None
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._drained: asyncio.Future[None] | None = None
        self._hot: CallbackDispatcher | None = None
        self._outcome = CallResult()
        self._is_half_closed = False
        self._request: bytes | None = None
        self._only: asyncio.Future[Any] | None = None
        self._feeding: asyncio.Task[None] | None = None

    # --- the start --------------------------------------------------------------------------------

    def send_only(self, request: Any) -> None:  # noqa: ANN401 - a message of any service
        """Set the only request of this call, before it has begun."""
        self._request = self._encoded(request)
        self._is_half_closed = True

    def send_all(self, requests: Any) -> None:  # noqa: ANN401 - an iterable of messages
        """Send all messages of an iterator."""
        self._feeding = self._loop.create_task(_send_all(self, requests))

    def begin(self, link: ClientProtocol, *, bytes_max: int, has_waited: bool = False) -> None:
        """Begin the call on its connection."""
        if self.done():
            return
        self.link = link
        pairs = self._pairs
        # The time left differs between calls; blocks of calls that did not wait are equal.
        timeout_s = self.time_remaining() if has_waited else self._timeout_s
        if timeout_s is not None:
            pairs = [*pairs, (b"grpc-timeout", grpc_framing.timeout_value(timeout_s))]
        block = self._method.head + block_of(pairs)
        self.stream_id = link.open_stream(self, block)
        self._message_buffer = MessageBuffer(
            link.connection, self.stream_id, bytes_max=bytes_max, flush_soon=link.flush_soon
        )
        if self._request is not None:
            message = grpc_framing.frame_message(self._request)
            self._request = None
            link.connection.send_data(self.stream_id, message, is_last=True)
        self._connected.set_result(None)

    # --- called by the connection -----------------------------------------------------------------

    def headers(self, fields: Fields, *, is_last: bool) -> None:
        """Take the first or the last headers of the response."""
        outcome = self._outcome
        if not outcome.begun.done():
            wrong = outcome.begin(fields, is_last=is_last)
            if wrong is not None:
                self.fail(*wrong)
                return
        if is_last:
            self._finish(*outcome.read_status(fields))

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """Take bytes of the response."""
        assert self._message_buffer is not None
        self._message_buffer.feed(data, is_last=is_last)
        if is_last:
            self._finish(_Code.UNKNOWN, NO_STATUS)

    def drained(self) -> None:
        """Resume a writer that waited for space."""
        # The report may concern data that was sent before later data had to wait.
        if self.link is None or self.link.connection.queued(self.stream_id):
            return
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._hot is not None:
            self._hot.on_writable()

    def on_reset(self, code: int, words: str) -> None:
        """End the call: its stream was reset."""
        if code == H2ErrorCode.CANCEL and self.time_remaining() == 0:
            # The server has the same deadline, and was faster.
            self._finish(_Code.DEADLINE_EXCEEDED, _EXPIRED)
            return
        self._finish(*status_of_reset(code, words))

    def fail(self, code: grpc.StatusCode, words: str) -> None:
        """End the call from this side, also if the server has reported OK."""
        if not self.done():
            if self.link is not None:
                self.link.connection.reset(self.stream_id, H2ErrorCode.CANCEL)
                self.link.flush_soon()
            self._finish(code, words)
        else:
            self._outcome.override_status(code, words)

    def _expire(self) -> None:
        self.fail(_Code.DEADLINE_EXCEEDED, _EXPIRED)

    def _finish(self, code: grpc.StatusCode, words: str) -> None:
        if self.done():
            return
        if self._expiry is not None:
            self._expiry.cancel()
        if self._feeding is not None:
            self._feeding.cancel()
        if not self._connected.done():
            self._connected.set_result(None)
        self._outcome.end(code, words)
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        if self._message_buffer is not None:
            self._message_buffer.feed(b"", is_last=True)
        self._has_ended(self)
        self._outcome.run_callbacks(self)

    # --- the interface of grpc.aio ----------------------------------------------------------------

    def _encoded(self, request: Any) -> bytes:  # noqa: ANN401
        encode = self._method.encode
        data: bytes = request if encode is None else encode(request)
        return data

    async def _next(self) -> Any:  # noqa: ANN401 - a message of any service, or EOF
        await _until(self._connected)
        if self._message_buffer is None:
            return grpc.aio.EOF
        try:
            data = await self._message_buffer.next()
            return grpc.aio.EOF if data is None else self._decoded(data)
        except grpc_framing.OversizedError as error:
            self.fail(error.code, str(error))
            return grpc.aio.EOF

    def _decoded(self, data: bytes) -> Any:  # noqa: ANN401 - a message of any service
        decode = self._method.decode
        try:
            return data if decode is None else decode(data)
        except Exception as error:
            words = f"the answer cannot be read: {error}"
            raise ResponseDecodeError(_Code.INTERNAL, words) from error

    async def deliver_to(self, stream_handler: StreamHandler) -> None:
        """Pass each response to the handler, which sends by its writer; raises as `read` does."""
        with self._cancelling():
            await _until(self._connected)
            if self._message_buffer is not None:
                self._hot = CallbackDispatcher(
                    self, UNSHARED, self._message_buffer, stream_handler, self._decoded, None
                )
                try:
                    await self._hot.run()
                finally:
                    self._hot = None
            await _until(self._outcome.done)
        self._outcome.check()

    def send(self, request: Any) -> bool:  # noqa: ANN401 - a message of any service
        """Send a message, unless the call has ended; False if it has to wait for space."""
        if self.link is None or self.done():
            return True
        self.link.flush_soon()
        message = grpc_framing.frame_message(self._encoded(request))
        return self.link.connection.send_data(self.stream_id, message)

    async def _only_answer(self) -> Any:  # noqa: ANN401 - a message of any service, or EOF
        """Read once, however often the call is awaited: interceptors await it, too."""
        only = self._only
        if only is None:
            only = self._only = self._loop.create_future()
            try:
                only.set_result(await self._next())
            finally:
                if not only.done():
                    only.cancel()
        elif not only.done():
            await asyncio.wait((only,))
        return only.result()

    async def _answer(self) -> Any:  # noqa: ANN401 - a message of any service
        with self._cancelling():
            answer = await self._only_answer()
            await _until(self._outcome.done)
        self._outcome.check()
        if answer is grpc.aio.EOF:
            self._outcome.override_status(_Code.INTERNAL, "the server sent no answer")
            self._outcome.check()
        return answer

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    @contextmanager
    def _cancelling(self) -> Iterator[None]:
        """Cancel the call if the task that waits for it is cancelled."""
        try:
            yield
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def read(self) -> Any:  # noqa: ANN401 - a message of any service, or EOF
        with self._cancelling():
            answer = await self._next()
            if answer is grpc.aio.EOF:
                await _until(self._outcome.done)
                self._outcome.check()
        return answer

    async def _all(self) -> AsyncIterator[Any]:
        while (answer := await self.read()) is not grpc.aio.EOF:
            yield answer

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._all()

    async def write(self, request: Any) -> None:  # noqa: ANN401 - a message of any service
        if self.done() or self._is_half_closed:
            raise asyncio.InvalidStateError(_OVER)
        with self._cancelling():
            await _until(self._connected)
        if self.link is None or self.done():
            self._outcome.check()
            raise asyncio.InvalidStateError(_OVER)
        if not self.send(request):
            self._drained = self._loop.create_future()
            with self._cancelling():
                await self._drained
            self._drained = None

    async def done_writing(self) -> None:
        if self.done() or self._is_half_closed:
            return
        self._is_half_closed = True
        await _until(self._connected)
        if self.link is not None and not self.done():
            self.link.connection.send_data(self.stream_id, b"", is_last=True)
            self.link.flush_soon()

    async def wait_for_connection(self) -> None:
        await _until(self._connected)
        if self.link is None:
            self._outcome.check()

    async def initial_metadata(self) -> Any:  # noqa: ANN401
        await _until(self._outcome.begun)
        return grpc.aio.Metadata(*self._outcome.initial)

    async def trailing_metadata(self) -> Any:  # noqa: ANN401
        await _until(self._outcome.done)
        return grpc.aio.Metadata(*self._outcome.trailing)

    async def code(self) -> grpc.StatusCode:
        await _until(self._outcome.done)
        assert self._outcome.code is not None
        return self._outcome.code

    async def details(self) -> str:
        await _until(self._outcome.done)
        return self._outcome.details

    def cancel(self) -> bool:
        if self.done():
            return False
        self._outcome.is_cancelled = True
        self.fail(_Code.CANCELLED, "Locally cancelled by application!")
        return True

    def cancelled(self) -> bool:
        return self._outcome.is_cancelled

    def done(self) -> bool:
        return self._outcome.code is not None

    def time_remaining(self) -> float | None:
        return None if self._deadline_s is None else max(0.0, self._deadline_s - self._loop.time())

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if self.done():
            callback(self)
        else:
            self._outcome.add_done_callback(callback)


async def _send_all(call: ClientCall, requests: Any) -> None:  # noqa: ANN401
    try:
        if hasattr(requests, "__aiter__"):
            async for request in requests:
                await call.write(request)
        else:
            for request in requests:
                await call.write(request)
        await call.done_writing()
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        # The reader of the responses gets the error.
        return


async def _until(happened: asyncio.Future[None]) -> None:
    """Wait for a shared event; cancelling one waiter does not affect the others."""
    if not happened.done():
        await asyncio.shield(happened)
