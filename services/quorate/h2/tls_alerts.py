"""An ssl context whose failed handshakes send their alert.

Event loops close the socket of a failed handshake immediately, and drop the bytes that OpenSSL
wanted to send: the client would see the end of the connection without its reason.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

# The socket whose connection the current task establishes.
ACCEPTED: Final[ContextVar[socket.socket | None]] = ContextVar("accepted", default=None)


class AlertingSession(ssl.SSLObject):
    """The TLS session of one connection, which sends the alert of a failed handshake."""

    _outgoing: ssl.MemoryBIO | None = None
    _accepted: socket.socket | None = None

    def send_alerts_to(self, accepted: socket.socket | None, outgoing: ssl.MemoryBIO) -> None:
        """Send the content of `outgoing` when the handshake fails."""
        self._accepted, self._outgoing = accepted, outgoing

    def do_handshake(self) -> None:
        """Continue the handshake. Raises ssl.SSLError."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self._accepted is not None and self._outgoing is not None:
                with suppress(OSError):
                    self._accepted.send(self._outgoing.read())
            raise
        self._accepted = self._outgoing = None


class AlertingContext(ssl.SSLContext):
    """A server's context; it finds the socket in `ACCEPTED` when a connection begins."""

    sslobject_class = AlertingSession

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # noqa: FBT001, FBT002 - as ssl has it
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Create the session over an event loop's buffers of a connection."""
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        if isinstance(made, AlertingSession):
            made.send_alerts_to(ACCEPTED.get(), outgoing)
        return made


def cause_of_failure(error: Exception) -> str | None:
    """Return OpenSSL's reason of a failed handshake; None if the client has disconnected."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None) or type(error).__name__
        return reason.lower().replace("_", " ")
    if isinstance(error, ConnectionAbortedError):
        return "it took too long"
    return None
