"""A collector of OTLP in the process of the test, and others that are none."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from tests.ports import HOST
from tests.recorded_spans import operation_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from tests.certificates import Leaf

WAIT_S = 120.0


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)


def _dictionary(pairs: list[KeyValue]) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


@dataclass(frozen=True, slots=True)
class Received:
    """A span, and whose it is."""

    service: str
    instance: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    attributes: dict[str, object]
    span: Span

    @property
    def operation(self) -> str:
        return operation_in(self.attributes, self.name)


@dataclass(slots=True)
class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Spans that have arrived so far."""

    port: int = 0
    spans: list[Received] = field(default_factory=list)
    # Calls that it answers with UNAVAILABLE from here on, and what it says to the others.
    refuses: bool = False
    calls: int = 0
    answer: trace_service_pb2.ExportTracePartialSuccess = field(
        default_factory=trace_service_pb2.ExportTracePartialSuccess
    )
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    async def Export(
        self,
        request: trace_service_pb2.ExportTraceServiceRequest,
        context: grpc.aio.ServicerContext[
            trace_service_pb2.ExportTraceServiceRequest,
            trace_service_pb2.ExportTraceServiceResponse,
        ],
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self.calls += 1
        if self.refuses:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "it is overloaded")
        for resource in request.resource_spans:
            of = _dictionary(list(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.spans += [
                    Received(
                        str(of["service.name"]),
                        str(of.get("service.instance.id")),
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.kind,
                        _dictionary(list(span.attributes)),
                        span,
                    )
                    for span in scope.spans
                ]
        self._arrived.set()
        return trace_service_pb2.ExportTraceServiceResponse(partial_success=self.answer)

    def of_trace(self, trace_id: str) -> list[Received]:
        return [span for span in self.spans if span.trace_id == trace_id]

    async def until(self, what: str, is_there: Callable[[], bool]) -> None:
        """Wait for spans; AssertionError names what never came."""
        try:
            async with asyncio.timeout(WAIT_S):
                while not is_there():
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            seen = sorted({(span.service, span.operation) for span in self.spans})
            raise AssertionError(f"never came: {what}; there are {seen}") from None


@asynccontextmanager
async def collecting(leaf: Leaf | None = None) -> AsyncIterator[Collector]:
    """A collector that takes everything; with a certificate by TLS."""
    collector = Collector()
    server = grpc.aio.server()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    if leaf is None:
        collector.port = server.add_insecure_port(f"{HOST}:0")
    else:
        credentials = grpc.ssl_server_credentials([(leaf.key, leaf.certificate)])
        collector.port = server.add_secure_port(f"{HOST}:0", credentials)
    await server.start()
    try:
        yield collector
    finally:
        await server.stop(None)


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A server that accepts connections and never answers: its port, and an event of the first."""
    came = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        came.set()
        with suppress(ConnectionError):
            while await reader.read(65536):
                pass
        writer.close()

    with socket.create_server((HOST, 0)) as listening:
        server = await asyncio.start_server(silent, sock=listening)
        try:
            yield listening.getsockname()[1], came
        finally:
            server.close()
            for writer in writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
