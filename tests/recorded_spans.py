"""Tracing into memory, for tests that look at the spans."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from quorate.telemetry import tracing
from quorate.telemetry.spans import Tracing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan


class Recorded:
    """What has ended so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of one name."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only one of that name."""
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


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    """As a dictionary, which may be empty."""
    return dict(span.attributes or {})
