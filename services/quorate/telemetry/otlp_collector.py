"""The collector as OTLP over gRPC reaches it, with what OpenTelemetry's exporter makes nothing of.

That drops the answer to a call that succeeds, in which a collector says how many spans it rejected.
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

# No error has this code. In the place of an empty set the exporter takes its own.
_NEVER: Final = frozenset({StatusCode.OK})


class CollectorExporter(OTLPSpanExporter):
    """Calls the collector; `rejections` has what came of the last call."""

    # Untyped in the exporter, which makes them where it is made.
    _client: Any

    def __init__(self, endpoint: str, rejections: Rejections, *, gives_up: bool) -> None:
        """One that `gives_up` calls once.

        Otherwise calls that fail are repeated, for up to OTEL_EXPORTER_OTLP_TIMEOUT.
        """
        self._rejections = rejections
        super().__init__(
            endpoint=endpoint,
            insecure=endpoint.startswith("http://"),
            retryable_error_codes=_NEVER if gives_up else None,
        )

    def _initialize_channel_and_stub(self) -> None:
        """The same, and for each new channel again: answers are noted."""
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._client = _Noting(self._client, self._rejections)


class _Noting:
    """The exporter's stub."""

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
