"""Accepts the connections of one listening socket, a batch in each iteration of the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from quorate.h2.fair_queue import queue_of_running_loop
from quorate.h2.peer_name import client_of, peer_of
from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode
from quorate.h2.tls_alerts import ACCEPTED, cause_of_failure
from quorate.h2.tls_handshake import establish

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

    from quorate.h2.server.connection_limiter import (
        AddressSlots,
        ConnectionStats,
        PendingHandshakes,
    )
    from quorate.h2.server.protocol import ServerProtocol

log = logging.getLogger(__name__)
# Connections accepted before yielding; the rest waits in the kernel.
BATCH_MAX: Final = 8
# Seconds of pause when descriptors or memory are exhausted, until some may have been released.
_SHORTAGE_S: Final = 0.2
_WORDS: Final = b"too many connections"
# The rejection that a plaintext client gets.
_REFUSAL: Final = frames.frame(frames.SETTINGS, 0, 0, b"") + frames.frame(
    frames.GOAWAY, 0, 0, bytes(4) + frames.WORD.pack(H2ErrorCode.NO_ERROR) + _WORDS
)


class Acceptor:
    """One port of a server; plaintext if the TLS `context` is None."""

    def __init__(
        self,
        listening: socket.socket,
        context: ssl.SSLContext | None,
        *,
        make_link: Callable[[], ServerProtocol],
        established: AddressSlots,
        handshakes: PendingHandshakes,
        stats: ConnectionStats,
    ) -> None:
        """The server counts the established connections; here the count is only read."""
        self._listening = listening
        self._context = context
        self._make_link = make_link
        self._established = established
        self._handshakes = handshakes
        self._stats = stats
        self._pause: asyncio.TimerHandle | None = None
        self._is_reading = False

    def start(self) -> None:
        """Start accepting connections."""
        self._pause, self._is_reading = None, True
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def stop(self) -> None:
        """Stop accepting connections."""
        if self._pause is not None:
            self._pause.cancel()
        if self._is_reading:
            self._is_reading = False
            asyncio.get_running_loop().remove_reader(self._listening)

    def close(self) -> None:
        """Release the port."""
        self._listening.close()

    def _accept(self) -> None:
        for _ in range(BATCH_MAX):
            try:
                accepted, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                words = "no connection can be taken now: %s"
                log.warning(words, error.strerror, extra={"repeats": error.errno})
                self.stop()
                self._pause = asyncio.get_running_loop().call_later(_SHORTAGE_S, self.start)
                return
            accepted.setblocking(False)  # noqa: FBT003
            self._begin(accepted, address)

    def _begin(self, accepted: socket.socket, address: tuple[Any, ...]) -> None:
        peer, now_s = peer_of(address), time.monotonic()
        client = client_of(peer)
        if not self._established.has_room(client):
            self._refuse(accepted, client, "connections", self._established.held_by(client))
        elif self._context is not None and not self._handshakes.make_room(client, now_s):
            self._refuse(accepted, client, "connections that are not established", None)
        else:
            task = asyncio.get_running_loop().create_task(self._establish(accepted, peer))
            self._handshakes.begin(task, client, now_s)

    def _refuse(self, accepted: socket.socket, client: str, what: str, held: int | None) -> None:
        self._stats.refused_connections += 1
        words = f"a connection of {client} is refused: there are too many {what}"
        about = {"repeats": what} if held is None else {"repeats": what, "held": held}
        log.warning(words, extra=about)
        if self._context is None:
            with suppress(OSError):
                accepted.send(_REFUSAL)
        accepted.close()

    async def _establish(self, accepted: socket.socket, peer: str) -> None:
        link = self._make_link()
        flow = queue_of_running_loop().flow(client_of(peer))
        ACCEPTED.set(accepted)
        try:
            if self._context is None:
                await asyncio.get_running_loop().connect_accepted_socket(lambda: link, accepted)
            else:
                await establish(accepted, link, self._context, flow)
        except (OSError, RuntimeError) as error:
            # RuntimeError is uvloop's error for a socket that is closed during the set-up.
            self._note_failure(error, peer)
            accepted.close()
        except asyncio.CancelledError:
            link.give_up()
            accepted.close()
            raise
        finally:
            ACCEPTED.set(None)
            flow.close()

    def _note_failure(self, error: Exception, peer: str) -> None:
        cause = None if self._context is None else cause_of_failure(error)
        if cause is None:
            log.debug("a connection has ended before it began: %s", error)
            return
        self._stats.failed_handshakes += 1
        words = f"a TLS handshake of {peer} has failed: {cause}"
        log.info(words, extra={"repeats": ("handshake", cause)})
