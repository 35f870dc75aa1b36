"""Metrics that a scrape finds."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from typing import TYPE_CHECKING

import pytest

from quorate.telemetry.histograms import Histogram
from quorate.telemetry.metrics import (
    POLL_S,
    PROCESS_METERS,
    CallbackCollector,
    MetricDefinition,
    MetricsServer,
    process_numbers,
)
from quorate.telemetry.metrics_http import ScrapeServer
from tests.ports import free_ports

if TYPE_CHECKING:
    from quorate.telemetry.metrics import Value


METERS = {
    "current_epoch": MetricDefinition("Epoch of the quorum"),
    "flushes_total": MetricDefinition("Flushes"),
    "current_state": MetricDefinition("The role", "state"),
    "flush_duration_seconds": MetricDefinition("One flush"),
    "uncommitted_voter_change": MetricDefinition("At the leader only"),
}


async def test_numbers_are_served_by_name_and_node() -> None:
    (port,) = free_ports(1)
    flushes = Histogram((0.5, 1.0))
    flushes.observe(0.5)
    flushes.observe(3.0)
    values: dict[str, Value] = {
        "current_epoch": 4,
        "flushes_total": 2,
        "current_state": {"leader": 1.0, "follower": 0.0},
        "flush_duration_seconds": flushes,
    }
    readings = CallbackCollector(lambda: values, {"node_id": "1"}, METERS)
    server = MetricsServer(readings.registry())
    server.start("127.0.0.1", port)
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
    finally:
        server.stop()
    lines = text.splitlines()
    assert [line for line in lines if line.startswith(("quorate_", "# HELP quorate_"))] == [
        "# HELP quorate_current_epoch Epoch of the quorum",
        'quorate_current_epoch{node_id="1"} 4.0',
        "# HELP quorate_current_state The role",
        'quorate_current_state{node_id="1",state="leader"} 1.0',
        'quorate_current_state{node_id="1",state="follower"} 0.0',
        "# HELP quorate_flush_duration_seconds One flush",
        'quorate_flush_duration_seconds_bucket{le="0.5",node_id="1"} 1.0',
        'quorate_flush_duration_seconds_bucket{le="1",node_id="1"} 1.0',
        'quorate_flush_duration_seconds_bucket{le="+Inf",node_id="1"} 2.0',
        'quorate_flush_duration_seconds_count{node_id="1"} 2.0',
        'quorate_flush_duration_seconds_sum{node_id="1"} 3.5',
        "# HELP quorate_flushes_total Flushes",
        'quorate_flushes_total{node_id="1"} 2.0',
    ]
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


async def answered(
    request: str, callback_collector: CallbackCollector, *, accept: str = "*/*"
) -> tuple[str, str, str]:
    """Status, headers and body of one request."""
    server = MetricsServer(callback_collector.registry())
    (port,) = free_ports(1)
    server.start("127.0.0.1", port)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{request} HTTP/1.0\r\nAccept: {accept}\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
    finally:
        server.stop()
    status, _, headers = head.partition("\r\n")
    return status.partition(" ")[2], headers, body


def read_some() -> dict[str, Value]:
    flushes = Histogram((0.5, 1.0))
    flushes.observe(0.5)
    state: dict[str, float] = {"leader": 1.0}
    return {
        "brokers": 3,
        "current_epoch": 4,
        "current_state": state,
        "flush_duration_seconds": flushes,
        "flushes_total": 2,
    }


SOME = METERS | {"brokers": MetricDefinition("Brokers", old="broker_count")}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("quorate_current_epoch", "quorate_current_epoch 4.0"),
        ("quorate_flushes_total", "quorate_flushes_total 2.0"),
        ("quorate_current_state", 'quorate_current_state{state="leader"} 1.0'),
        ("quorate_flush_duration_seconds_sum", "quorate_flush_duration_seconds_sum 0.5"),
        ("quorate_brokers", "quorate_brokers 3.0"),
        ("quorate_broker_count", "quorate_broker_count 3.0"),
    ],
)
async def test_a_scrape_may_name_the_metrics_that_it_wants(name: str, line: str) -> None:
    readings = CallbackCollector(read_some, {}, SOME)
    status, _, body = await answered(f"GET /metrics?name[]={name}", readings)
    assert status == "200 OK"
    assert [each for each in body.splitlines() if not each.startswith("#")] == [line]


async def test_a_scrape_may_name_a_histogram_without_its_suffixes() -> None:
    _, _, body = await answered(
        "GET /metrics?name[]=quorate_flush_duration_seconds", CallbackCollector(read_some, {}, SOME)
    )
    assert "quorate_flush_duration_seconds_sum 0.5" in body
    assert 'quorate_flush_duration_seconds_bucket{le="+Inf"}' in body
    assert "quorate_current_epoch" not in body


@pytest.mark.parametrize("version", ["zzz", "1.x", "", "9" * 5_000, "1.0.0;version=a"])
async def test_a_malformed_version_in_accept_gets_the_default_format(version: str) -> None:
    url = "GET /metrics?name[]=quorate_current_epoch"
    readings = CallbackCollector(read_some, {}, SOME)
    accept = f"application/openmetrics-text;version={version};escaping=foo;q=a"
    status, headers, body = await answered(url, readings, accept=accept)
    assert status == "200 OK"
    assert "\nContent-Type: text/plain" in headers
    assert body == (await answered(url, readings))[2]


async def test_openmetrics_is_served_to_a_client_that_asks_for_it() -> None:
    accept = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    _, headers, body = await answered(
        "GET /metrics", CallbackCollector(read_some, {}, SOME), accept=accept
    )
    assert "\nContent-Type: application/openmetrics-text" in headers
    assert body.endswith("# EOF\n")


@pytest.mark.parametrize("name", ["process_cpu_seconds_total", "process_resident_memory_bytes"])
def test_a_scrape_may_name_the_metrics_of_the_process(name: str) -> None:
    registry = CallbackCollector(read_some, {}, SOME).registry()
    families = registry.restricted_registry([name]).collect()
    assert [sample.name for family in families for sample in family.samples] == [name]


def test_names_are_told_without_reading() -> None:
    def read() -> dict[str, Value]:
        raise AssertionError("read")

    CallbackCollector(read, {}, SOME).registry()


async def test_a_renamed_gauge_has_both_names() -> None:
    _, _, body = await answered("GET /metrics", CallbackCollector(read_some, {}, SOME))
    assert "# HELP quorate_broker_count Now quorate_brokers\n" in body
    assert "\nquorate_broker_count 3.0\n" in body
    assert "\nquorate_brokers 3.0\n" in body


@pytest.mark.parametrize("path", ["/", "/nope", "/metrics/", "/favicon.ico", "*"])
async def test_a_path_without_metrics_is_not_found(path: str) -> None:
    for method in ("GET", "HEAD", "POST"):
        status, _, body = await answered(f"{method} {path}", CallbackCollector(read_some, {}, SOME))
        assert status == "404 Not Found"
        assert "quorate_" not in body


async def test_head_is_answered_as_get_is_without_the_body() -> None:
    readings = CallbackCollector(read_some, {}, SOME)
    url = "/metrics?name[]=quorate_current_epoch"
    status, headers, body = await answered(f"GET {url}", readings)
    of_head = await answered(f"HEAD {url}", readings)
    assert (of_head[0], of_head[2]) == (status, "")
    wanted = f"content-length: {len(body)}"
    assert wanted in headers.lower()
    assert wanted in of_head[1].lower()
    assert "content-type: text/plain" in of_head[1].lower()
    status, _, _ = await answered("POST /metrics", readings)
    assert status.startswith("405 ")


async def test_metrics_are_served_on_each_address() -> None:
    (port,) = free_ports(1)
    server = MetricsServer(CallbackCollector(dict, {}, {}).registry())
    server.start(("127.0.0.1", "127.77.0.2"), port)
    try:
        for host in ("127.0.0.1", "127.77.0.2"):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert b"process_resident_memory_bytes " in await reader.read()
            writer.close()
    finally:
        server.stop()


def test_a_stop_is_not_noticed_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller that stops the server is blocked for that time."""
    intervals: list[float] = []
    serving = threading.Event()
    serve_forever = ScrapeServer.serve_forever

    def serve(server: ScrapeServer, poll_interval: float = 0.5) -> None:
        intervals.append(poll_interval)
        serving.set()
        serve_forever(server, poll_interval)

    monkeypatch.setattr(ScrapeServer, "serve_forever", serve)
    server = MetricsServer(CallbackCollector(dict, {}, {}).registry())
    server.start("127.0.0.1", 0)
    serving.wait()
    server.stop()
    assert intervals == [POLL_S]


def test_a_server_without_a_thread_leaves_the_port_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    (port,) = free_ports(1)
    server = MetricsServer(CallbackCollector(dict, {}, {}).registry())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            server.start("127.0.0.1", port)
    server.stop()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_every_process_reports_what_became_of_its_log_and_spans() -> None:
    assert set(process_numbers()) == set(PROCESS_METERS)
    assert process_numbers()["log_lines_dropped_total"] == 0
