"""HTTP server of the metrics port, with a bounded number of connections.

A thread serves each scrape. A client that opens more connections than allowed ends the oldest one,
so that a scrape gets through, however many connections are idle.
"""

from __future__ import annotations

import io
import logging
import re
import socket
import threading
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlencode
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from quorate.settings.port_checks import any_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)
PATH: Final = "/metrics"
CONNECTIONS_MAX: Final = 16
# Seconds that a client may send nothing, or leave its answer unread.
SILENCE_S: Final = 5.0
# Seconds until the thread of a closed connection has noticed.
_PATIENCE_S: Final = 1.0
_SHORTAGE_PAUSE_S: Final = 0.2
# The client library compares the version that a client accepts, and raises if it is no number.
_MALFORMED_VERSION: Final = re.compile(r"version=(?!\d{1,9}(?:\.\d{1,9})*\s*(?:[,;]|$))")
_NAMES: Final = "name[]"
# The client library filters by the names of samples, and those of a histogram have suffixes.
_SAMPLES: Final = ("", "_bucket", "_sum", "_count")


class _Handler(WSGIRequestHandler):
    timeout = SILENCE_S

    def handle(self) -> None:
        # wsgiref writes a traceback there for each client that does not read its answer.
        self._errors = io.StringIO()
        super().handle()
        complain(self._errors.getvalue())

    def get_stderr(self) -> io.StringIO:
        """The stream for request failures, which are logged once instead of for each."""
        return self._errors

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401
        """Log nothing for a scrape."""


def complain(words: str) -> None:
    """Report a scrape that failed, once a minute: any client of the port can repeat it."""
    if words:
        log.warning("a scrape failed: %s", words, extra={"repeats": "scrape"})


def only_metrics(application: WSGIApplication) -> WSGIApplication:
    """The application at /metrics alone, with HEAD answered as GET is, but for the body."""

    def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") != PATH:
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"Not here: metrics are at {PATH}\n".encode()]
        environ = {**environ, **_understood(environ)}
        if environ["REQUEST_METHOD"] != "HEAD":
            return application(environ, start_response)
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[..., object]:
            begun.append((status, headers))
            return start_response

        body = b"".join(application({**environ, "REQUEST_METHOD": "GET"}, begin))
        ((status, headers),) = begun
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return []

    return serve


def _understood(environ: WSGIEnvironment) -> dict[str, str]:
    """The variables of the request that the client library takes for something else."""
    changed = {}
    if _MALFORMED_VERSION.search(environ.get("HTTP_ACCEPT", "")):
        changed["HTTP_ACCEPT"] = ""
    query = parse_qs(environ.get("QUERY_STRING", ""))
    if _NAMES in query:
        names = [name + suffix for name in query[_NAMES] for suffix in _SAMPLES]
        changed["QUERY_STRING"] = urlencode({**query, _NAMES: names}, doseq=True)
    return changed


class ScrapeServer(WSGIServer):
    """Serves one WSGI application from a bounded number of threads."""

    def __init__(
        self,
        host: str,
        port: int,
        application: Callable[..., Any],
        *,
        beside: ScrapeServer | None = None,
    ) -> None:
        """Listen on one address, or with an empty host on all. Raises OSError if it is taken.

        A server with `beside` shares the limit on connections with that server.
        """
        family, *_, address = socket.getaddrinfo(
            host or any_address(), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self.address_family = family
        self._places: threading.BoundedSemaphore = (
            beside._places if beside else threading.BoundedSemaphore(CONNECTIONS_MAX)
        )
        self._open: dict[socket.socket, None] = beside._open if beside else {}
        super().__init__((str(address[0]), port), _Handler)
        self.set_app(application)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            # Too many open files: the connection stays ready, and this loop would spin.
            time.sleep(_SHORTAGE_PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        if not self._places.acquire(blocking=False):
            self._end_oldest()
            if not self._places.acquire(timeout=_PATIENCE_S):
                self.shutdown_request(request)
                return
        self._open[request] = None
        thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._ended(request)

    def _serve(self, request: socket.socket, client_address: object) -> None:
        try:
            # The connection may break, time out, or be closed in favour of a new one.
            with suppress(OSError):
                self.finish_request(request, client_address)
        except Exception:
            complain(traceback.format_exc())
        finally:
            self._ended(request)

    def _ended(self, request: socket.socket) -> None:
        self._open.pop(request, None)
        self.shutdown_request(request)
        self._places.release()

    def _end_oldest(self) -> None:
        for request in tuple(self._open)[:1]:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def server_bind(self) -> None:
        """Bind without the base class's look-up of this host's name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.address_family == socket.AF_INET6:
            is_only = int(self.server_address[0] != "::")
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, is_only)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()
