"""OTLP exporter over gRPC that reports the spans which the collector rejected.

OpenTelemetry's exporter drops the answer to a successful call, which has the number of rejections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from grpc import RpcError, StatusCode
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceResponse,
    )

    from quorate.telemetry.span_exporter import Rejections

# No error has this code. An empty set would be replaced by the exporter's default.
_NEVER: Final = frozenset({StatusCode.OK})


class CollectorExporter(OTLPSpanExporter):
    """Calls the collector; `rejections` has the outcome of the last call."""

    # Untyped in the exporter, which creates it in its constructor.
    _client: Any

    def __init__(self, endpoint: str, rejections: Rejections, *, gives_up: bool) -> None:
        """With `gives_up`, each call is tried once.

        Otherwise failed calls are repeated, for up to OTEL_EXPORTER_OTLP_TIMEOUT.
        """
        self._rejections = rejections
        super().__init__(
            endpoint=endpoint,
            insecure=endpoint.startswith("http://"),
            retryable_error_codes=_NEVER if gives_up else None,
        )

    def _initialize_channel_and_stub(self) -> None:
        """Also wrap the stub of each new channel, to record answers."""
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._client = _Noting(self._client, self._rejections)


class _Noting:
    """Wraps the exporter's stub."""

    def __init__(self, stub: Any, rejections: Rejections) -> None:  # noqa: ANN401 - generated
        self._stub = stub
        self._rejections = rejections

    def Export(self, **words: Any) -> ExportTraceServiceResponse:  # noqa: ANN401 - OTLP's
        try:
            answer: ExportTraceServiceResponse = self._stub.Export(**words)
        except RpcError as error:
            # The exporter logs it, but not twice in a minute.
            self._rejections.words = f"{error.code().name}: {error.details()}"
            raise
        partial = answer.partial_success
        self._rejections.spans = max(0, partial.rejected_spans)
        self._rejections.words = partial.error_message
        return answer
