"""asyncio protocol of a client connection."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, Protocol, cast

import grpc

from quorate.h2.protocol import frames
from quorate.h2.protocol.connection import Connection
from quorate.h2.protocol.events import (
    ConnectionFailed,
    DataReceived,
    GoAwayReceived,
    HeadersReceived,
    PingAnswered,
    StreamReset,
    StreamsAllowed,
    StreamWritable,
)
from quorate.h2.protocol.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.h2.protocol.events import Event
    from quorate.h2.protocol.header_codec import Fields

log = logging.getLogger(__name__)
_UNAVAILABLE: Final = grpc.StatusCode.UNAVAILABLE
_WRITE_HIGH_BYTES: Final = 256 * 1024
ALPN: Final = "h2"
_CLOSED: Final = "Socket closed"
# Characters of a server's reason for GOAWAY.
_WORDS_MAX: Final = 100
# Responses were requested, so there is space for many unread ones.
LIMITS: Final = Limits(
    stream_window_bytes=1024 * 1024,
    window_bytes=4 * 1024 * 1024,
    unread_bytes_max=16 * 1024 * 1024,
)


class CallReceiver(Protocol):
    """The interface of a call to its connection."""

    def headers(self, fields: Fields, *, is_last: bool) -> None:
        """Take the first or the last headers of the response."""
        ...

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """Take bytes of the response."""
        ...

    def drained(self) -> None:
        """Note that the data that waited for space has been sent."""
        ...

    def on_reset(self, code: int, words: str) -> None:
        """End the call: its stream was reset."""
        ...

    def fail(self, code: grpc.StatusCode, words: str) -> None:
        """End the call: the server does not accept it."""
        ...


class ClientProtocol(asyncio.Protocol):
    """The asyncio protocol of one connection; ready when the server's settings have arrived."""

    def __init__(
        self,
        *,
        ping_every_s: float,
        ping_patience_s: float,
        gone: Callable[[ClientProtocol], None],
        widened: Callable[[], None],
    ) -> None:
        """`gone` is called when it takes no more calls, `widened` when it may take more."""
        self.connection = Connection(LIMITS, is_client=True)
        self._ping_every_s, self._ping_patience_s = ping_every_s, ping_patience_s
        self._gone = gone
        self._widened = widened
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, CallReceiver] = {}
        self._allowed = frames.STREAM_ID_MAX
        self._heard_s = 0.0
        self._is_flush_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._has_pinged = False
        self._close_reason = ""
        self.is_leaving = False

    @property
    def has_room(self) -> bool:
        """True if the server accepts one more call."""
        return len(self._calls) < self._allowed

    @property
    def is_open(self) -> bool:
        """True if the connection exists."""
        return self._transport is not None

    def check(self) -> None:
        """Raise ConnectionResetError if it takes no calls: a server may send GOAWAY immediately."""
        if self.is_leaving:
            raise ConnectionResetError(self.close_reason)

    def open_stream(self, call: CallReceiver, block: bytes) -> int:
        """Begin a call; return its stream id."""
        stream_id = self.connection.open_stream(block)
        self._calls[stream_id] = call
        self.flush_soon()
        if stream_id > frames.STREAM_ID_MAX - 2:
            self.is_leaving = True
            self._gone(self)
        return stream_id

    def ended(self, stream_id: int) -> None:
        """Remove a call that has ended."""
        self._calls.pop(stream_id, None)
        if self.is_leaving and not self._calls:
            self.close()

    # --- asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_BYTES)
        self._heard_s = time.monotonic()
        session = transport.get_extra_info("ssl_object")
        if session is not None and session.selected_alpn_protocol() != ALPN:
            self._close_reason = "the server does not agree on h2"
            self.abort()
            return
        self._bound_silence()
        self.connection.start()
        self._flush()
        self._timer = self._loop.call_later(self._ping_every_s, self._look)

    def _bound_silence(self) -> None:
        """Let the kernel end the connection if sent data is not acknowledged.

        A host that is gone acknowledges nothing, whereas one whose process is frozen does. So a
        call learns of it long before a ping is due, and the next call reconnects.
        """
        if self._transport is None or not hasattr(socket, "TCP_USER_TIMEOUT"):
            return
        link = self._transport.get_extra_info("socket")
        if link is not None and link.family in (socket.AF_INET, socket.AF_INET6):
            patience_ms = max(1, round(self._ping_patience_s * 1000))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)

    def data_received(self, data: bytes) -> None:
        self._heard_s = time.monotonic()
        self._handle(self.connection.receive(data, self._heard_s))
        self.flush_soon()
        if not self.ready.done() and self.connection.is_greeted:
            self.ready.set_result(None)

    @property
    def close_reason(self) -> str:
        """The reason why the connection has ended, or will end."""
        return self._close_reason or _CLOSED

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.is_leaving = True
        if isinstance(exc, ssl.SSLError) and not self._close_reason:
            # With TLS 1.3 a server verifies the client's certificate after the client has finished
            # the handshake.
            self._close_reason = f"TLS: {exc.reason}"
        if self._timer is not None:
            self._timer.cancel()
        why = self.close_reason
        if not self.ready.done():
            self.ready.set_exception(ConnectionResetError(why))
            # Retrieved here, because the future may have no waiter any more.
            self.ready.exception()
        for call in list(self._calls.values()):
            call.on_reset(frames.H2ErrorCode.REFUSED_STREAM, why)
        self._calls.clear()
        self._gone(self)

    def pause_writing(self) -> None:
        self.connection.pause()

    def resume_writing(self) -> None:
        self.connection.resume()
        self._handle(self.connection.take_events())
        self.flush_soon()

    # --- events -----------------------------------------------------------------------------------

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, DataReceived):
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.feed(event.data, is_last=event.is_last)
            elif isinstance(event, HeadersReceived):
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.headers(event.fields, is_last=event.is_last)
            elif isinstance(event, StreamWritable):
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.drained()
            elif isinstance(event, StreamReset):
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.on_reset(event.code, event.words)
            elif isinstance(event, PingAnswered):
                self._has_pinged = False
            elif isinstance(event, StreamsAllowed):
                self._allowed = event.streams
                self._widened()
            elif isinstance(event, GoAwayReceived):
                self._server_leaves(event)
            elif isinstance(event, ConnectionFailed):
                self._close_reason = f"the server broke HTTP/2: {event.words}"
                self._flush()
                self.abort()

    def _server_leaves(self, event: GoAwayReceived) -> None:
        self.is_leaving = True
        # A reason after the handshake is not kept: clients of calls in progress decide by the
        # message.
        if event.words and not self.ready.done():
            self._close_reason = f"the server goes away: {event.words[:_WORDS_MAX]}"
        for stream_id, call in list(self._calls.items()):
            if stream_id > event.last_stream_id:
                words = f"the server refused the stream, and goes away: {event.words}"
                call.fail(_UNAVAILABLE, words)
        self._gone(self)
        if not self._calls:
            self.close()

    # --- out --------------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Write all pending bytes of one event-loop iteration together."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        transport, connection = self._transport, self.connection
        if transport is None:
            return
        data = connection.take()
        if data and not transport.is_closing():
            transport.write(data)
        if connection.has_more:
            connection.resume()
            self._handle(connection.take_events())
            self.flush_soon()

    def _look(self) -> None:
        """Send a ping after a period of silence; close the connection if it is not answered."""
        silent_s = time.monotonic() - self._heard_s
        wait_s = self._ping_every_s
        if self._has_pinged and silent_s >= self._ping_patience_s:
            self._close_reason = "the server does not answer pings"
            self.abort()
            return
        if silent_s >= self._ping_every_s:
            self._has_pinged = True
            self.connection.ping()
            self.flush_soon()
            wait_s = self._ping_patience_s
        else:
            self._has_pinged = False
            wait_s = self._ping_every_s - silent_s
        self._timer = self._loop.call_later(wait_s, self._look)

    def close(self) -> None:
        """Close the connection when all pending bytes are sent."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately."""
        if self._transport is not None:
            self._transport.abort()

    def discard(self) -> None:
        """Abort a connection that is not needed any more.

        If it is aborted while it begins, uvloop closes the socket without a callback.
        """
        self.abort()
        self.connection_lost(None)
