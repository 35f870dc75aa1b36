"""What a scrape finds."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request

import pytest

from quorate.telemetry.metrics import POLL_S, MetricsServer, Readings
from quorate.telemetry.scrapes import ScrapeServer


async def test_numbers_are_served_by_name_and_node() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    readings = Readings(lambda: {"epoch": 4, "flushes_total": 2}, {"node_id": "1"})
    server = MetricsServer(readings.registry())
    server.start("127.0.0.1", port)
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
    finally:
        server.stop()
    assert 'quorate_epoch{node_id="1"} 4.0' in text
    assert 'quorate_flushes_total{node_id="1"} 2.0' in text


def test_a_stop_is_not_noticed_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops the server stands still for it."""
    intervals: list[float] = []
    serving = threading.Event()
    serve_forever = ScrapeServer.serve_forever

    def serve(server: ScrapeServer, poll_interval: float = 0.5) -> None:
        intervals.append(poll_interval)
        serving.set()
        serve_forever(server, poll_interval)

    monkeypatch.setattr(ScrapeServer, "serve_forever", serve)
    server = MetricsServer(Readings(dict, {}).registry())
    server.start("127.0.0.1", 0)
    serving.wait()
    server.stop()
    assert intervals == [POLL_S]


def test_a_server_without_a_thread_leaves_the_port_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = MetricsServer(Readings(dict, {}).registry())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            server.start("127.0.0.1", port)
    server.stop()
    with socket.create_server(("127.0.0.1", port)):
        pass
