"""What makes spans, where tracing is on: provider, ids, limits; loaded by `telemetry.tracing`.

Which roots are recorded is decided where they begin: elections and changes of the voters always,
calls by their method (rpc/call_spans.py). A call that is not recorded has no span at all, and one
with a parent does as that does.
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

# A span that is ended holds no more than this; of what is longer or more, the rest is left out.
LIMITS: Final = SpanLimits(
    max_attributes=64,
    max_events=128,
    max_links=16,
    max_event_attributes=16,
    max_link_attributes=16,
    max_attribute_length=1024,
)
# What a link is for: the attribute of it that says so.
LINK: Final = "kraft.link"
_SCOPE: Final = "quorate"
# The words of an exception are enough; a traceback would be cut, as all that is long.
_ON_ERROR: Final = {"record_exception": False, "set_status_on_exception": True}
# It warns of each value that is cut.
logging.getLogger("opentelemetry.attributes").setLevel(logging.ERROR)


class _Ids(RandomIdGenerator):
    """Random ids, but for a root whose trace id and span id are told beforehand."""

    def __init__(self) -> None:
        # The span is begun in the thread that has told the ids.
        self._told = threading.local()

    def tell(self, trace_id: int, span_id: int) -> None:
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
        """OpenTelemetry's variables for the service's name and its attributes come first."""
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
        """Spans that are sent to a collector."""
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
        """The Kubernetes namespace of this process; empty where its environment names none."""
        return str(self._provider.resource.attributes.get("k8s.namespace.name", ""))

    @property
    def place(self) -> str:
        """Words for the name of a trace, which say of which quorum it is."""
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
        """Begin a span, of the current context without `parent`. The caller ends it.

        A `name` of ours is its kind, too: what came of it may give it another name.
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
        """Begin a trace, whatever is going on here; `ids` are those of the trace and its root."""
        if ids is not None:
            self._ids.tell(*ids)
        return self.start(name, attributes, parent=Context(), links=links, start_ns=start_ns)

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[Span]:
        """A span around what is done inside; an exception is its error."""
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
        """The same for a trace that begins here, or that began at a wall-clock time before.

        `links` are by what they are for. `now_ns` tells the time of its end, if that is not to be
        the wall clock's, which may have been set back since `start_ns`.
        """
        made = links_to(links or {})
        begun = self.start_root(name, attributes, links=made, start_ns=start_ns)
        try:
            with trace.use_span(begun, **_ON_ERROR):
                yield begun
        finally:
            begun.end(None if now_ns is None else now_ns())

    def record(self, name: str, start_ns: int, end_ns: int, error: str = "") -> None:
        """A child of the current span for what is over; `error` is empty if it came about."""
        span = self.start(name, {}, start_ns=start_ns)
        if error:
            span.set_status(trace.StatusCode.ERROR, error)
        span.end(end_ns)

    @contextmanager
    def within(self, parent: Context | None) -> Iterator[None]:
        """What begins inside belongs to `parent`, or without one to nothing."""
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
        """Which span a context has, for a link; an invalid one for none."""
        return trace.get_current_span(context).get_span_context()

    def annotate(self, attributes: Attributes) -> None:
        """Add to the current span."""
        trace.get_current_span().set_attributes(attributes)

    def failed(self, words: str) -> None:
        """The deed that the current span stands for did not come about."""
        trace.get_current_span().set_status(trace.StatusCode.ERROR, words)

    def event(self, name: str, attributes: Attributes) -> None:
        """Something happens within the current span, now."""
        trace.get_current_span().add_event(name, attributes)

    def ids(self) -> tuple[str, str] | None:
        """Trace id and span id of the current span, in hexadecimal digits."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return None
        return f"{context.trace_id:032x}", f"{context.span_id:016x}"

    # --- from process to process ------------------------------------------------------------------

    def inject(self, context: Context | None = None) -> dict[str, str]:
        """W3C's headers for a call that belongs to this context, the current one without it."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers, context)
        return headers

    def extract(self, headers: Mapping[str, str]) -> Context | None:
        """The context that a caller's headers tell; None for none that can be read."""
        context = self._propagator.extract(headers, Context())
        return context if self.context_of(context).is_valid else None

    # --- the way out ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Ask for what there is to be sent now; returns at once."""
        if isinstance(self._processor, SpanQueue):
            self._processor.hurry()

    def stop(self, limit_s: float) -> str:
        """Send what is left, for as long at most; the sentence for spans that were lost, if any."""
        queue = self._processor
        if isinstance(queue, SpanQueue):
            queue.stop(limit_s)
        self._provider.shutdown()
        return queue.loss if isinstance(queue, SpanQueue) else ""

    def numbers(self) -> dict[str, float]:
        """For a scrape."""
        queue = self._processor
        if not isinstance(queue, SpanQueue):
            return {}
        return {
            "spans_exported_total": queue.exported,
            "spans_dropped_total": queue.dropped,
            "spans_queued": queue.queued,
        }


def links_to(spans: Mapping[str, SpanContext | None]) -> list[Link]:
    """Links by what they are for; those to None are left out."""
    return [trace.Link(to, {LINK: why}) for why, to in spans.items() if to is not None]


def resource_of(service: str, attributes: Attributes) -> Resource:
    """Who makes the spans: what OpenTelemetry's variables say, then what is given here."""
    own = {
        "service.name": service,
        "service.version": quorate.__version__,
        "telemetry.sdk.language": "python",
        "telemetry.sdk.name": "opentelemetry",
        "telemetry.sdk.version": metadata.version("opentelemetry-sdk"),
    }
    return Resource({**own, **attributes}).merge(OTELResourceDetector().detect())
