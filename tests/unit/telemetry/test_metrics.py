"""What a scrape finds."""

from __future__ import annotations

import asyncio
import socket
import urllib.request

from quorate.telemetry.metrics import MetricsServer, Readings


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
