"""Tracing into memory, for tests that look at the spans."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from quorate.telemetry import tracing
from quorate.telemetry.span_names import KIND
from quorate.telemetry.tracer import Tracing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.sdk.trace import ReadableSpan


class Recorded:
    """The spans that have ended so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of one kind, or of one name."""
        return [span for span in self.spans if name in (operation_of(span), span.name)]

    def one(self, name: str) -> ReadableSpan:
        """The only one of that kind or name."""
        (span,) = self.named(name)
        return span


@contextmanager
def recorded(*, fetch_ratio: float = 0.0, write_ratio: float = 0.0) -> Iterator[Recorded]:
    """Trace this process while it lasts."""
    exporter = InMemorySpanExporter()
    tracing.use(
        Tracing(
            SimpleSpanProcessor(exporter),
            "quorate-test",
            {},
            fetch_ratio=fetch_ratio,
            write_ratio=write_ratio,
        )
    )
    try:
        yield Recorded(exporter)
    finally:
        tracing.stop(0.0)


def operation_of(span: ReadableSpan) -> str:
    """The key for searches of a span that this process made."""
    return operation_in(span.attributes or {}, span.name)


def operation_in(attributes: Mapping[str, object], name: str) -> str:
    """The key for searches: the kind of a span, or the method of a call; else its name."""
    return str(attributes.get(KIND) or attributes.get("rpc.method") or name)


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    """All but its kind, as a dictionary, which may be empty."""
    return {name: value for name, value in (span.attributes or {}).items() if name != KIND}
