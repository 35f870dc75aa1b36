"""The metrics port has a bounded number of threads, and a scrape comes through."""

from __future__ import annotations

import socket
import threading
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from quorate.telemetry.metrics_http import CONNECTIONS_MAX, ScrapeServer

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
    monkeypatch.setattr("quorate.telemetry.metrics_http._PATIENCE_S", 30.0)
    before = threading.active_count()
    with ExitStack() as connections:
        for _ in range(3 * CONNECTIONS_MAX):
            connections.enter_context(socket.create_connection(("127.0.0.1", server.server_port)))
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as response:
            assert response.read() == b"numbers"
        assert server.connections <= CONNECTIONS_MAX
        assert threading.active_count() - before <= CONNECTIONS_MAX


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_without_a_host_it_listens_on_both_families(host: str) -> None:
    server = ScrapeServer("", 0, answer)
    try:
        socket.create_connection((host, server.server_port)).close()
    finally:
        server.server_close()


def send(server: ScrapeServer, request: bytes) -> None:
    """One connection with this request, to its end."""
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass


def test_a_client_makes_no_tracebacks(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(environ: object, start: object) -> Iterable[bytes]:
        raise ValueError("a defect")

    server = ScrapeServer("127.0.0.1", 0, fail)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        for request in (b"GET / HTTP/1.0\r\n\r\n", b"\xff\xfe\r\n\r\n", b"GET / HTTP/9.9\r\n"):
            send(server, request)
            send(server, request)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert capfd.readouterr().err == ""
    failures = [line for line in caplog.records if "a scrape failed" in line.getMessage()]
    assert {getattr(line, "repeats", None) for line in failures} == {"scrape"}
    assert "ValueError: a defect" in failures[0].getMessage()


def test_an_answer_that_is_not_read_makes_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def much(environ: object, start: Callable[..., object]) -> Iterable[bytes]:
        start("200 OK", [("Content-Type", "text/plain")])
        return [b"x" * 10_000_000]

    monkeypatch.setattr("quorate.telemetry.metrics_http._Handler.timeout", 0.1)
    ended = threading.Event()

    class Server(ScrapeServer):
        def shutdown_request(self, request: Any) -> None:  # noqa: ANN401
            super().shutdown_request(request)
            ended.set()

    server = Server("127.0.0.1", 0, much)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert ended.wait(60)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert capfd.readouterr().err == ""
