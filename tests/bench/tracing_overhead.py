"""Measure tracing at a steady rate of commits to three controllers: off against on, in turns.

    python -m tests.bench.tracing_overhead [--rounds N] [--seconds N] [--rate N]

A collector in this process counts what it is sent. Processor time and memory are those of the
controllers; compare the ratios, for the figures are this machine's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.bench import payloads
from tests.bench.metadata_load import TOPICS, MetadataSubject
from tests.bench.quorate_cluster import QuorateMembers
from tests.bench.result_tables import Bounds, Row, render, render_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_EXPORTS = "opentelemetry.proto.collector.trace.v1.TraceService"
_SETTLE_S = 3.0


@dataclass(slots=True)
class Collected:
    """Data that has arrived: bytes of requests, and the spans in them."""

    size: int = 0
    spans: int = 0

    def export(self, request: bytes, _: grpc.ServicerContext) -> bytes:
        self.size += len(request)
        parsed = ExportTraceServiceRequest.FromString(request)
        self.spans += sum(
            len(scope.spans) for each in parsed.resource_spans for scope in each.scope_spans
        )
        return b""


@dataclass(slots=True)
class Measured:
    """Rounds of one way: of all controllers together, per second of the load."""

    cpu_s: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    exported_kib: list[float] = field(default_factory=list)
    spans: list[float] = field(default_factory=list)


def paced(make: Callable[[int], bytes], count: int, rate: float) -> Iterator[bytes]:
    """So many writes a second, however long each takes."""
    begun = time.monotonic()
    for number in range(1, count + 1):
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        yield make(number)


def commit(address: tuple[str, int], count: int, rate: float) -> None:
    """Return when all are committed. Raises ValueError where one was refused."""
    host, port = address
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        writes = paced(payloads.config_writes(TOPICS), count, rate)
        stream: Any = channel.stream_stream(payloads.WRITE_PATH)
        last = 0
        for answer in stream(writes):
            last = payloads.last_write(answer)
        if last != count:
            raise ValueError(f"{last} of {count} writes were answered")


def measure(root: Path, endpoint: str, seconds: float, rate: float, into: Measured) -> None:
    """One round of a new quorum; without an endpoint tracing is off."""
    overrides = {"tracing.otlp.endpoint": endpoint} if endpoint else {}
    with QuorateMembers(root, overrides=overrides) as members:
        MetadataSubject(members).prepare()
        leader = members.address(members.leader())
        commit(leader, int(rate), rate)
        before = members.cpu_s()
        commit(leader, int(seconds * rate), rate)
        into.cpu_s.append((members.cpu_s() - before) / seconds)
        into.rss_mib.append(sum(members.rss_mib()))


def run(root: Path, *, rounds: int, seconds: float, rate: float) -> str:
    """The tables."""
    off, on, collected = Measured(), Measured(), Collected()
    server = grpc.server(ThreadPoolExecutor(2))
    handler: Any = grpc.unary_unary_rpc_method_handler(collected.export)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_EXPORTS, {"Export": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    for number in range(rounds):
        for name, endpoint, into in (("off", "", off), ("on", f"127.0.0.1:{port}", on)):
            folder = root / f"{name}-{number}"
            folder.mkdir()
            size, spans = collected.size, collected.spans
            measure(folder, endpoint, seconds, rate, into)
            # The last spans are sent after a second at the latest.
            time.sleep(_SETTLE_S if endpoint else 0.0)
            into.exported_kib.append((collected.size - size) / 1024 / seconds)
            into.spans.append((collected.spans - spans) / seconds)
    server.stop(None)
    rows = [
        Row("processor time of three controllers", "s/s", on.cpu_s, off.cpu_s),
        Row("resident memory of three controllers", "MiB", on.rss_mib, off.rss_mib),
    ]
    sent = Bounds()
    sent.add("sent to the collector", "KiB/s", on.exported_kib)
    sent.add("spans", "1/s", on.spans)
    title = f"Tracing on, at {rate:g} commits a second"
    return render(title, "tracing off", rows) + "\n" + render_bounds("What leaves", sent)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.tracing_overhead", description=__doc__
    )
    parser.add_argument("--rounds", type=int, default=3, help="of each, in turns (default 3)")
    parser.add_argument("--seconds", type=float, default=12.0, help="of a round (default 12)")
    parser.add_argument("--rate", type=float, default=1000.0, help="commits a second")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="quorate-traced-") as folder:
        tables = run(
            Path(folder),
            rounds=arguments.rounds,
            seconds=arguments.seconds,
            rate=arguments.rate,
        )
    sys.stdout.write(tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
