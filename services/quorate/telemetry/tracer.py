"""Tracer built on the OpenTelemetry SDK; imported only when tracing is enabled.

The decision to record a root span is made where it starts: elections and voter changes always,
calls by their method (rpc/call_spans.py). A call that is not recorded has no span at all, and a
span with a parent follows its parent's decision.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING, Final, Self

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import quorate
from quorate.telemetry.span_exporter import Rejections, SpanQueue
from quorate.telemetry.span_names import KIND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Link, Span, SpanContext, SpanKind

    from quorate.settings.tracing import TracingSettings

    Value = str | bool | int | float | Sequence[str]
    Attributes = Mapping[str, Value]

# Limits of an ended span; anything longer or more is dropped.
LIMITS: Final = SpanLimits(
    max_attributes=64,
    max_events=128,
    max_links=16,
    max_event_attributes=16,
    max_link_attributes=16,
    max_attribute_length=1024,
)
# Attribute of a link with its purpose.
LINK: Final = "kraft.link"
_SCOPE: Final = "quorate"
# The message of an exception is enough; a traceback would be truncated, as all long values.
_ON_ERROR: Final = {"record_exception": False, "set_status_on_exception": True}
# It warns about each truncated value.
logging.getLogger("opentelemetry.attributes").setLevel(logging.ERROR)


class _Ids(RandomIdGenerator):
    """Random ids, except for a root whose trace id and span id are given beforehand."""

    def __init__(self) -> None:
        # The span starts in the thread that has given the ids.
        self._told = threading.local()

    def force_next(self, trace_id: int, span_id: int) -> None:
        self._told.trace_id, self._told.span_id = trace_id, span_id

    def generate_trace_id(self) -> int:
        told: int = self._told.__dict__.pop("trace_id", 0)
        return told or super().generate_trace_id()

    def generate_span_id(self) -> int:
        told: int = self._told.__dict__.pop("span_id", 0)
        return told or super().generate_span_id()


class Tracing:
    """The spans of this process."""

    def __init__(
        self,
        processor: SpanProcessor,
        service: str,
        attributes: Attributes,
        *,
        fetch_ratio: float = 0.0,
        write_ratio: float = 0.0,
    ) -> None:
        """OpenTelemetry's variables for the service's name and attributes take precedence."""
        self.fetch_ratio = fetch_ratio
        self.write_ratio = write_ratio
        self._processor = processor
        self._ids = _Ids()
        self._provider = TracerProvider(
            sampler=ParentBased(ALWAYS_ON),
            resource=resource_of(service, attributes),
            id_generator=self._ids,
            span_limits=LIMITS,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self.tracer = self._provider.get_tracer(_SCOPE, quorate.__version__)
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def to_collector(cls, settings: TracingSettings, service: str, attributes: Attributes) -> Self:
        """Create the tracer of spans that are sent to a collector."""
        from quorate.telemetry.otlp_collector import CollectorExporter

        rejections, gives_up = Rejections(), settings.gives_up
        exporter = CollectorExporter(settings.endpoint, rejections, gives_up=gives_up)
        return cls(
            SpanQueue(exporter, settings.endpoint, rejections=rejections, gives_up=gives_up),
            service,
            attributes,
            fetch_ratio=settings.fetch_ratio,
            write_ratio=settings.write_ratio,
        )

    @property
    def namespace(self) -> str:
        """The Kubernetes namespace of this process; empty if its environment names none."""
        return str(self._provider.resource.attributes.get("k8s.namespace.name", ""))

    @property
    def place(self) -> str:
        """Text for the name of a trace that identifies the quorum."""
        return f" in namespace {self.namespace}" if self.namespace else ""

    # --- making spans -----------------------------------------------------------------------------

    def start(
        self,
        name: str,
        attributes: Attributes,
        *,
        parent: Context | None = None,
        kind: SpanKind = trace.SpanKind.INTERNAL,
        links: Sequence[Link] = (),
        start_ns: int | None = None,
    ) -> Span:
        """Start a span, of the current context without `parent`. The caller ends it.

        A `name` of ours is also its kind: it may be renamed when its outcome is known.
        """
        if name.startswith("kraft."):
            attributes = {KIND: name, **attributes}
        return self.tracer.start_span(
            name, parent, kind, attributes, links, start_time=start_ns, record_exception=False
        )

    def start_root(
        self,
        name: str,
        attributes: Attributes,
        *,
        ids: tuple[int, int] | None = None,
        links: Sequence[Link] = (),
        start_ns: int | None = None,
    ) -> Span:
        """Start a trace, whatever span is current; `ids` are those of the trace and its root."""
        if ids is not None:
            self._ids.force_next(*ids)
        return self.start(name, attributes, parent=Context(), links=links, start_ns=start_ns)

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[Span]:
        """Enclose the block in a span; an exception is its error."""
        with trace.use_span(self.start(name, attributes), end_on_exit=True, **_ON_ERROR) as begun:
            yield begun

    @contextmanager
    def root(
        self,
        name: str,
        attributes: Attributes,
        *,
        links: Mapping[str, SpanContext | None] | None = None,
        start_ns: int | None = None,
        now_ns: Callable[[], int] | None = None,
    ) -> Iterator[Span]:
        """The same for a trace that starts here, or that started at an earlier wall-clock time.

        `links` are by their purpose. `now_ns` returns the time of its end, if that must not be the
        wall clock's, which may have been set back since `start_ns`.
        """
        made = links_to(links or {})
        begun = self.start_root(name, attributes, links=made, start_ns=start_ns)
        try:
            with trace.use_span(begun, **_ON_ERROR):
                yield begun
        finally:
            begun.end(None if now_ns is None else now_ns())

    def record(self, name: str, start_ns: int, end_ns: int, error: str = "") -> None:
        """Add a completed child of the current span; `error` is empty after success."""
        span = self.start(name, {}, start_ns=start_ns)
        if error:
            span.set_status(trace.StatusCode.ERROR, error)
        span.end(end_ns)

    @contextmanager
    def within(self, parent: Context | None) -> Iterator[None]:
        """Make `parent` the context of spans in this block; without one they have no parent."""
        token = otel_context.attach(Context() if parent is None else parent)
        try:
            yield
        finally:
            otel_context.detach(token)

    # --- what is current --------------------------------------------------------------------------

    def current(self) -> Context | None:
        """The current context, if there is a span in it."""
        context = otel_context.get_current()
        return context if self.context_of(context).is_valid else None

    def context_of(self, context: Context | None) -> SpanContext:
        """The span of a context, for a link; an invalid one if it has none."""
        return trace.get_current_span(context).get_span_context()

    def annotate(self, attributes: Attributes) -> None:
        """Add attributes to the current span."""
        trace.get_current_span().set_attributes(attributes)

    def set_error(self, words: str) -> None:
        """Set the error of the current span."""
        trace.get_current_span().set_status(trace.StatusCode.ERROR, words)

    def event(self, name: str, attributes: Attributes) -> None:
        """Add an event to the current span."""
        trace.get_current_span().add_event(name, attributes)

    def ids(self) -> tuple[str, str] | None:
        """Trace id and span id of the current span, in hexadecimal digits."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return None
        return f"{context.trace_id:032x}", f"{context.span_id:016x}"

    # --- from process to process ------------------------------------------------------------------

    def inject(self, context: Context | None = None) -> dict[str, str]:
        """W3C's headers for a call in this context, by default the current one."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers, context)
        return headers

    def extract(self, headers: Mapping[str, str]) -> Context | None:
        """The context in a caller's headers; None if they hold no valid one."""
        context = self._propagator.extract(headers, Context())
        return context if self.context_of(context).is_valid else None

    # --- the way out ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Request that all ended spans are sent now, without waiting."""
        if isinstance(self._processor, SpanQueue):
            self._processor.flush_soon()

    def stop(self, limit_s: float) -> str:
        """Send the remaining spans within the limit; returns a message about lost ones, or ""."""
        queue = self._processor
        if isinstance(queue, SpanQueue):
            queue.stop(limit_s)
        self._provider.shutdown()
        return queue.loss if isinstance(queue, SpanQueue) else ""

    def metrics(self) -> dict[str, float]:
        """Values for a scrape."""
        queue = self._processor
        if not isinstance(queue, SpanQueue):
            return {}
        return {
            "spans_exported_total": queue.exported,
            "spans_dropped_total": queue.dropped,
            "spans_queued": queue.queued,
        }


def links_to(spans: Mapping[str, SpanContext | None]) -> list[Link]:
    """Links by their purpose; those to None are left out."""
    return [trace.Link(to, {LINK: why}) for why, to in spans.items() if to is not None]


def resource_of(service: str, attributes: Attributes) -> Resource:
    """The resource of the spans: OpenTelemetry's variables take precedence over the arguments."""
    own = {
        "service.name": service,
        "service.version": quorate.__version__,
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.version": metadata.version("opentelemetry-sdk"),
    }
    return Resource({**own, **attributes}).merge(OTELResourceDetector().detect())
