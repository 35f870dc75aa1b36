"""The TLS handshake of one accepted connection, as work of its client in the fair queue.

The event loop's TLS protocol computes on each read: a signature takes up to some milliseconds, and
hundreds of clients may send their first message at the same moment. So this protocol receives the
bytes of a handshake, and passes them on when it is the client's turn. Afterwards the TLS protocol
receives them itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from quorate.h2.protocol.limits import LAST_WORDS_S, PREFACE_S

if TYPE_CHECKING:
    import socket
    import ssl

    from quorate.h2.fair_queue import Flow


async def establish(
    accepted: socket.socket, link: asyncio.BufferedProtocol, context: ssl.SSLContext, flow: Flow
) -> None:
    """Do the handshake, and start `link` on the connection.

    Raises OSError or RuntimeError; the caller then closes the socket.
    """
    loop = asyncio.get_running_loop()
    handshake = HandshakeProtocol(link, flow)
    transport, _ = await loop.connect_accepted_socket(lambda: handshake, accepted)
    try:
        _require_open(transport)
        # This runs before the callbacks of start_tls, which let the TLS protocol begin and read.
        loop.call_soon(handshake.stand_in_front)
        secured = await loop.start_tls(
            transport,
            link,
            context,
            server_side=True,
            ssl_handshake_timeout=PREFACE_S,
            ssl_shutdown_timeout=LAST_WORDS_S,
        )
        # The end of an already lost connection would be reported to `link` never or twice.
        _require_open(transport)
        assert secured is not None
        handshake.step_aside()
        link.connection_made(secured)
    except BaseException:
        transport.abort()
        raise


def _require_open(transport: asyncio.Transport) -> None:
    if transport.is_closing():
        raise ConnectionResetError("the client has gone")


class HandshakeProtocol(asyncio.BufferedProtocol):
    """Receives for the TLS protocol of a connection, until the handshake is done."""

    def __init__(self, link: asyncio.BufferedProtocol, flow: Flow) -> None:
        """Read bytes into the buffer of `link`, which connections share."""
        self._link = link
        self._flow = flow
        self._transport: asyncio.Transport | None = None
        self._tls: asyncio.BufferedProtocol | None = None
        self._room = memoryview(b"")
        # Bytes received, and not passed on yet. While there are any, reading is paused.
        self._waiting = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # uvloop may still read.
        self._transport.pause_reading()

    def stand_in_front(self) -> None:
        """From now on receive for the TLS protocol, which the transport has by now."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._tls = cast("asyncio.BufferedProtocol", transport.get_protocol())
        transport.set_protocol(self)
        if self._waiting:
            # The TLS protocol begins in this iteration.
            asyncio.get_running_loop().call_soon(self._pass_on_in_turn)

    def step_aside(self) -> None:
        """Let the TLS protocol receive directly."""
        transport, tls = self._transport, self._tls
        if transport is not None and tls is not None:
            self._pass_on(0.0)
            self._tls = None
            transport.set_protocol(tls)

    def get_buffer(self, sizehint: int) -> memoryview:
        self._room = memoryview(self._link.get_buffer(sizehint))
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        has_turn_due = bool(self._waiting)
        self._waiting += self._room[:nbytes]
        if self._tls is None or has_turn_due:
            self._pause()
        else:
            self._pass_on_in_turn()

    def _pass_on_in_turn(self) -> None:
        if not self._flow.run(self._pass_on):
            self._pause()

    def _pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _pass_on(self, _: float) -> bool:
        """Pass the received bytes to the TLS protocol, which computes with them."""
        waiting, self._waiting = self._waiting, bytearray()
        tls, transport = self._tls, self._transport
        if not waiting or tls is None or transport is None:
            return False
        while waiting:
            room = memoryview(tls.get_buffer(len(waiting)))
            size = min(len(room), len(waiting))
            room[:size] = waiting[:size]
            del waiting[:size]
            tls.buffer_updated(size)
        transport.resume_reading()
        return False

    def eof_received(self) -> bool | None:
        return None if self._tls is None else self._tls.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        tls, self._tls, self._transport = self._tls, None, None
        if tls is not None:
            tls.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._tls is not None:
            self._tls.pause_writing()

    def resume_writing(self) -> None:
        if self._tls is not None:
            self._tls.resume_writing()
