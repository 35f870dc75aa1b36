"""The exporter notes the spans that a collector rejects, and the cause of a call that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from grpc import RpcError, StatusCode
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace.export import SpanExportResult

from quorate.telemetry.otlp_collector import CollectorExporter, _Noting
from quorate.telemetry.span_exporter import Rejections

if TYPE_CHECKING:
    from collections.abc import Iterator

# Nothing listens here; no call is made.
ENDPOINT = "http://127.0.0.1:1"


class UnavailableError(RpcError):
    def code(self) -> StatusCode:
        return StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "connection refused"

    def trailing_metadata(self) -> tuple[()]:
        return ()


class Stub:
    """Answers with what it is given, or raises it."""

    def __init__(self, outcome: ExportTraceServiceResponse | Exception) -> None:
        self.outcome = outcome

    def Export(self, **_: object) -> ExportTraceServiceResponse:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def rejections() -> Rejections:
    return Rejections()


@pytest.fixture
def exporter(rejections: Rejections) -> Iterator[CollectorExporter]:
    made = CollectorExporter(ENDPOINT, rejections, gives_up=True)
    yield made
    made.shutdown()


def answer(spans: int, words: str) -> ExportTraceServiceResponse:
    partial = ExportTracePartialSuccess(rejected_spans=spans, error_message=words)
    return ExportTraceServiceResponse(partial_success=partial)


@pytest.mark.parametrize("spans", [0, 3])
def test_what_was_rejected_is_noted_with_the_words(
    exporter: CollectorExporter, rejections: Rejections, spans: int
) -> None:
    exporter._client = _Noting(Stub(answer(spans, "too old")), rejections)
    assert exporter.export([]) is SpanExportResult.SUCCESS
    assert rejections == Rejections(spans, "too old")


def test_fewer_than_none_are_none(exporter: CollectorExporter, rejections: Rejections) -> None:
    exporter._client = _Noting(Stub(answer(-5, "")), rejections)
    exporter.export([])
    assert rejections == Rejections()


def test_a_call_that_fails_is_noted_and_not_repeated(
    exporter: CollectorExporter, rejections: Rejections
) -> None:
    exporter._client = _Noting(Stub(UnavailableError()), rejections)
    assert exporter.export([]) is SpanExportResult.FAILURE
    assert rejections.words == "UNAVAILABLE: connection refused"
