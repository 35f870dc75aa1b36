"""asyncio protocol of a server connection."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from quorate.h2.call_headers import request_of
from quorate.h2.keepalive import Due, Liveness
from quorate.h2.peer_name import client_of, peer_of
from quorate.h2.peer_text import cause_of
from quorate.h2.protocol.connection import Connection
from quorate.h2.protocol.events import (
    ConnectionFailed,
    DataReceived,
    HeadersReceived,
    PingAnswered,
    StreamReset,
    StreamWritable,
)
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.protocol.receive_buffer import ReceivedBytes
from quorate.h2.server.call import ServerCall
from quorate.h2.server.non_grpc_requests import HttpRefusals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from quorate.h2.call_headers import CallDetails, Request
    from quorate.h2.fair_queue import FairQueue
    from quorate.h2.protocol.events import Event
    from quorate.h2.protocol.limits import Limits, ListenerMemory

log = logging.getLogger(__name__)
ALPN: Final = "h2"
# The calls of a lost connection are ended in groups of this size.
_CUT_AT_ONCE: Final = 8
_GIVEN_UP: Final = {Due.NOT_READING: "reads nothing", Due.NOT_ANSWERING: "does not answer"}
# While this many steps of calls wait, no bytes are parsed: they could begin more calls.
_STEPS_MAX: Final = 32
_WRITE_HIGH_BYTES: Final = 256 * 1024
# Bytes kept for a peer that reads nothing, excluding bodies, which wait in their streams.
_UNSENT_BYTES_MAX: Final = 2 * 1024 * 1024


class Place(Protocol):
    """A slot of a call, to be released once."""

    def release(self, _: Any = None) -> None: ...  # noqa: ANN401 - the task, as a callback


class Gate(Protocol):
    """Admits calls before anything is created for them."""

    def admit(self, method: str, peer: str) -> Place | bytes | None:
        """Acquire a slot, or return the header block that rejects the call.

        None if the call needs no slot.
        """
        ...


class ServerProtocol(asyncio.BufferedProtocol):
    """The asyncio protocol of one connection."""

    def __init__(
        self,
        limits: Limits,
        *,
        message_bytes_max: int,
        read_buffer: memoryview,
        queue: FairQueue,
        gate: Gate | None = None,
        memory: ListenerMemory,
        find: Callable[[CallDetails], Awaitable[Any]],
        admit: Callable[[ServerProtocol], bool],
        gone: Callable[[ServerProtocol], None],
    ) -> None:
        self.connection = Connection(limits, is_client=False, memory=memory)
        self.message_bytes_max = message_bytes_max
        self.find = find
        self.peer = ""
        self._admit = admit
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, ServerCall] = {}
        self._calls_max = limits.streams_max
        self._refusals = HttpRefusals(self.connection)
        self._received = ReceivedBytes()
        self._read_buffer = read_buffer
        self._gate = gate
        # The address is not known yet.
        self.flow = queue.flow("")
        self._uncut: list[ServerCall] = []
        self._session: ssl.SSLObject | None = None
        self._auth: dict[str, tuple[bytes, ...]] | None = None
        self._is_flush_due = False
        self._is_leaving = False
        self._liveness = Liveness(time.monotonic())

    # --- asyncio ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH_BYTES)
        self.peer = peer_of(transport.get_extra_info("peername"))
        self.flow.close()
        self.flow = self.flow.queue.flow(client_of(self.peer))
        if not self._admit(self):
            self._transport.abort()
            return
        self._session = transport.get_extra_info("ssl_object")
        if self._session is not None and self._session.selected_alpn_protocol() != ALPN:
            self._end(H2ErrorCode.INADEQUATE_SECURITY, "the client does not offer h2 by ALPN")
            return
        self.connection.start()
        self.flush_soon()
        # asyncio delivers data that came with the end of the TLS handshake before this callback.
        if self._received:
            self.flow.submit(self._parse)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that all connections share.

        A buffer for each would take much memory, since many sockets may be readable at a time.
        """
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._liveness.on_bytes(time.monotonic())
        has_turn_due = bool(self._received)
        self._received.put(bytes(self._read_buffer[:nbytes]))
        if not has_turn_due and self._transport is not None and not self.flow.run(self._parse):
            self._transport.pause_reading()

    def _parse(self, until_s: float) -> bool:
        """Parse received bytes until the clock shows `until_s`; return whether some are left."""
        transport, clock = self._transport, self.flow.queue.clock
        if transport is None:
            return False
        received, now_s = self._received, time.monotonic()
        # Tasks that wait for their first step precede bytes that would begin more tasks.
        while received and len(self.flow.steps) < _STEPS_MAX:
            self._handle(self.connection.receive(received.take(), now_s))
            if clock() >= until_s:
                break
        self.flush_soon()
        if received:
            return True
        if not transport.is_closing() and not transport.is_reading():
            transport.resume_reading()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._received.clear()
        self.connection.close()
        self._uncut = list(self._calls.values())
        self.flow.run(self._cut_calls)

    def _cut_calls(self, _: float) -> bool:
        """End some calls of a lost connection; return whether some are left."""
        cut = self._uncut[-_CUT_AT_ONCE:]
        del self._uncut[-_CUT_AT_ONCE:]
        for call in cut:
            call.on_client_gone()
        # The tasks of all calls that are ended in this iteration end in the next one.
        self.flow.expect_steps(len(cut))
        if not self._uncut:
            self.flow.close()
            self._gone(self)
        return bool(self._uncut)

    def pause_writing(self) -> None:
        self._liveness.blocked_s = time.monotonic()
        self.connection.pause()

    def resume_writing(self) -> None:
        self._liveness.blocked_s = None
        self.connection.resume()
        self._handle(self.connection.take_events())
        self.flush_soon()

    # --- events -----------------------------------------------------------------------------------

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, HeadersReceived):
                self._headers(event)
            elif isinstance(event, DataReceived):
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.feed(event.data, is_last=event.is_last)
                else:
                    self._refusals.receive(event.stream_id, len(event.data), is_last=event.is_last)
            elif isinstance(event, StreamReset):
                self._stream_ended(event)
            elif isinstance(event, StreamWritable):
                self._refusals.forget(event.stream_id)
                if (call := self._calls.get(event.stream_id)) is not None:
                    call.drained()
            elif isinstance(event, PingAnswered):
                self._liveness.on_pong()
            elif isinstance(event, ConnectionFailed):
                self._failed(event)

    def _headers(self, event: HeadersReceived) -> None:
        stream_id, fields = event.stream_id, event.fields
        call = self._calls.get(stream_id)
        if call is None and b":method" not in fields.pseudo:
            # Trailers of a stream without a call, or whose call has ended.
            self._refusals.receive(stream_id, 0, is_last=event.is_last)
            return
        if call is None:
            request = request_of(fields)
            if request.http_status is not None:
                self._refusals.begin(stream_id, request.http_status, is_last=event.is_last)
                return
            if len(self._calls) >= self._calls_max:
                # Streams that were reset are closed, while their handlers may still run.
                self.connection.reset(stream_id, H2ErrorCode.REFUSED_STREAM)
                return
            call = self._begin(stream_id, request)
            if call is None:
                return
        if event.is_last:
            call.feed(b"", is_last=True)

    def _begin(self, stream_id: int, request: Request) -> ServerCall | None:
        """Begin a call; None if it is rejected, which costs neither a task nor a status."""
        place: Place | None = None
        if self._gate is not None and request.fault is None:
            admitted = self._gate.admit(request.details.method, self.peer)
            if isinstance(admitted, bytes):
                self.connection.send_headers(stream_id, admitted, is_last=True)
                self._liveness.on_last_call(time.monotonic())
                self.flush_soon()
                return None
            place = admitted
        call = self._calls[stream_id] = ServerCall(self, stream_id, request, place)
        call.begin()
        assert call.task is not None
        call.task.add_done_callback(lambda _: self._call_ended(stream_id))
        if place is not None:
            call.task.add_done_callback(place.release)
        return call

    def _call_ended(self, stream_id: int) -> None:
        call = self._calls.pop(stream_id, None)
        if call is not None:
            # The task's exception would hold the call, which holds the task.
            call.task = None
        if not self._calls:
            self._liveness.on_last_call(time.monotonic())
            if self._is_leaving:
                self.flush_soon()

    def _stream_ended(self, event: StreamReset) -> None:
        if not event.is_peers:
            words = f"a call of {self.peer} ends: {event.words}"
            log.info(words, extra={"repeats": ("call", cause_of(event.words))})
        self._refusals.forget(event.stream_id)
        call = self._calls.get(event.stream_id)
        if call is not None:
            call.on_client_gone()

    def _failed(self, event: ConnectionFailed) -> None:
        words = f"the connection of {self.peer} ends with {event.code.name}: {event.words}"
        log.info(words, extra={"repeats": (event.code, cause_of(event.words))})
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def _end(self, code: H2ErrorCode, words: str) -> None:
        self.connection.go_away(code, words)
        self._failed(ConnectionFailed(code, words))

    # --- out --------------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Write all pending bytes of one event-loop iteration together."""
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        transport, connection = self._transport, self.connection
        if transport is None:
            return
        data = connection.take()
        if data and not transport.is_closing():
            transport.write(data)
            if transport.get_write_buffer_size() > _UNSENT_BYTES_MAX:
                self._give_up("reads nothing")
                return
        if connection.has_more:
            connection.resume()
            self._handle(connection.take_events())
            self.flush_soon()
        elif self._is_leaving and not self._calls and self._liveness.blocked_s is None:
            transport.close()

    # --- called by the server ---------------------------------------------------------------------

    def check_timeouts(self, now_s: float) -> None:
        """Close a connection that is idle, half-open or not HTTP/2; send a ping if one is due."""
        if self._refusals.look(now_s):
            self.flush_soon()
        if self._received:
            self._liveness.on_backlog(now_s)
        due = self._liveness.check(now_s, has_calls=bool(self._calls) or self._is_leaving)
        if due in _GIVEN_UP:
            self._give_up(_GIVEN_UP[due])
        elif due is Due.NO_PREFACE:
            self._end(H2ErrorCode.SETTINGS_TIMEOUT, "nothing was sent")
        elif due is Due.IDLE:
            self.go_away("idle")
        elif due is Due.PING:
            self.connection.ping()
            self.flush_soon()

    def _give_up(self, words: str) -> None:
        log.info("%s %s: its connection ends", self.peer, words, extra={"repeats": words})
        self.abort()

    def go_away(self, words: str = "the server stops") -> None:
        """Accept no more calls, and close the connection after the last one."""
        if not self._is_leaving:
            self._is_leaving = True
            self.connection.go_away(H2ErrorCode.NO_ERROR, words)
            self.flush_soon()

    def cancel_calls(self) -> list[asyncio.Task[None]]:
        """End all calls without a status, as a lost connection does; return their tasks."""
        self.go_away()
        tasks = [call.task for call in self._calls.values() if call.task is not None]
        for call in list(self._calls.values()):
            call.on_client_gone()
        return tasks

    def close(self) -> None:
        """Close the connection when all pending bytes are sent."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately, dropping pending bytes."""
        if self._transport is not None:
            self._transport.abort()

    def give_up(self) -> None:
        """Abort a connection that was interrupted as it began: uvloop does not report its end."""
        self.abort()
        self.connection_lost(None)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The calls in progress."""
        return [call.task for call in self._calls.values() if call.task is not None]

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """The TLS identity of the client, in gRPC's terms."""
        if self._auth is None:
            self._auth = {} if self._session is None else _auth_of(self._session)
        return self._auth


def _auth_of(session: ssl.SSLObject) -> dict[str, tuple[bytes, ...]]:
    auth: dict[str, tuple[bytes, ...]] = {"transport_security_type": (b"ssl",)}
    certificate = session.getpeercert(binary_form=True)
    if certificate is not None:
        auth["x509_pem_cert"] = (ssl.DER_cert_to_PEM_cert(certificate).encode(),)
    return auth
