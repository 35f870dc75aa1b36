"""The metrics port has a bounded number of threads, and a scrape comes through."""

from __future__ import annotations

import socket
import threading
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from quorate.telemetry.scrapes import CONNECTIONS_MAX, ScrapeServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def answer(environ: object, start: Callable[..., object]) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"numbers"]


@pytest.fixture
def server() -> Iterator[ScrapeServer]:
    server = ScrapeServer("127.0.0.1", 0, answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_scrape_comes_through_beside_connections_that_say_nothing(
    server: ScrapeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whose thread gets no time to notice that it has to make room is waited for.
    monkeypatch.setattr("quorate.telemetry.scrapes._PATIENCE_S", 30.0)
    before = threading.active_count()
    with ExitStack() as connections:
        for _ in range(3 * CONNECTIONS_MAX):
            connections.enter_context(socket.create_connection(("127.0.0.1", server.server_port)))
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as response:
            assert response.read() == b"numbers"
        assert server.connections <= CONNECTIONS_MAX
        assert threading.active_count() - before <= CONNECTIONS_MAX
